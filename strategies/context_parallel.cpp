// Context parallelism: the tokens of every sequence are divided over ranks.
#include "strategies/all.hpp"

namespace stratagem::strategies {

/// op-trans of every operator along the tokens "s". Attention reads keys and values of all tokens
/// ("t"), so the lowering finds an all-gather of each in the forward pass; the backward pass gathers
/// them again (only the rank's own part is kept) and reduce-scatters their gradients. Learned
/// positions divide as the tokens do; operators that cannot divide the tokens (a mixture's dispatch,
/// whose capacity is per sample) are replicated. Not modelled: a ring that passes keys and values on
/// chunk by chunk behind the attention of the chunk before, and chunks paired so that every rank has
/// the same share of a causal mask (scores are computed in full on all ranks, as on one). Source:
/// Llama Team, arXiv:2407.21783, section 3.3.2.
void context_parallel(Plan& plan, const Options& options) {
  if (options.context == 1) return;
  const Axis ranks{.name = "context", .size = options.context, .stride = options.stride("cp")};
  for (const model::OpId op : plan.operators()) {
    const bool tokens = model::may_split(plan.graph().operators[op].annotation, "s");
    plan.assign(plan.trans(op, {.dim = tokens ? "s" : "", .parts = ranks.size}), ranks);
  }
}

}  // namespace stratagem::strategies

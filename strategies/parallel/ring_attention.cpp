// Ring attention: context ranks pass keys and values on around a ring, beside attention.
#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

/// How each context rank gets the keys and values of the others.
struct Exchange {
  bool ring = false;
};

/// op-order of every fused attention along the axis of context_parallel.cpp: the part on a rank's
/// own keys and values comes first, that on those of its neighbour next. Source: Liu et al., Ring
/// Attention, arXiv:2310.01889, section 3; how the parts are computed: lowering/blocks/ring.hpp.
void run_in_ring(Plan& plan, const Options& options) {
  if (!options.own.of<Exchange>().ring) return;
  if (options.context == 1) throw InputError("", "", "several context ranks for a ring", "1");
  bool any = false;
  for (const model::OpId op : plan.operators()) {
    if (!model::is_fused_attention(plan.graph().operators[op])) continue;
    plan.run_in_ring(op, "context");
    any = true;
  }
  if (!any) throw InputError("", "", "a model with fused attention for a ring", "one without");
}

}  // namespace

Strategy ring_attention() {
  return {
      {{"context_exchange", own(&Exchange::ring), choice<bool>({{"gather", false}, {"ring", true}}),
        "how each context rank gets the keys and values of the others: `gather`, all before "
        "attention begins; `ring`, in messages beside the attention to those that are there"}},
      &run_in_ring};
}

}  // namespace stratagem::strategies

// Megatron-LM's sequence parallelism: tensor ranks divide the tokens where all of them would
// otherwise compute the same.
#include <algorithm>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {

bool divides_tokens(const model::Operator& op, const Options& options) {
  return options.division.tokens && model::may_split(*op.annotation, "s");
}

namespace {

/// tensor_parallel divides what it would replicate along the tokens; here only models without
/// tokens are refused. The lowering finds an all-gather and a reduce-scatter in place of every
/// all-reduce, keeps the divided part for the backward pass, and gathers it again there: two
/// all-gathers more per layer. Gradients of norms and row biases become partial sums over the
/// tensor ranks. Source: Korthikanti et al., arXiv:2205.05198, section 4.2.2.
void check_tokens(Plan& plan, const Options& options) {
  if (!options.division.tokens) return;
  const auto divides = [&](model::OpId op) {
    return divides_tokens(plan.graph().operators[op], options);
  };
  if (std::ranges::none_of(plan.operators(), divides))
    throw InputError("", "", "a model whose operators divide tokens", "none");
}

}  // namespace

Strategy sequence_parallel() {
  using Flag = Option<Options>;
  return {{Flag{"sequence_parallel", within(&Options::division, &LayerDivision::tokens), flag(),
                "tensor ranks divide the tokens in norms, dropouts and residuals: gathers and "
                "scatters in place of all-reduces; divides `sequence`"}
               .worth({false, true}, [](const Options& o) { return o.tensor > 1; })},
          &check_tokens};
}

}  // namespace stratagem::strategies

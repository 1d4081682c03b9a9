// TeraPipe: pipelines over slices of every sequence.
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

/// op-trans of every micro-batch along its tokens. A slice of a causal model needs the keys and
/// values of the slices before it, which the same devices computed: cell (i, m, k) follows (i, m,
/// k-1) forward, and (i, m, k+1) backward, where the gradients of keys and values add up. Slices
/// pass from stage to stage one by one, so that a stage waits for one slice instead of one
/// micro-batch.
/// Source: Li et al., TeraPipe, ICML 2021, section 3.
void slice_tokens(Plan& plan, const Options& options) { plan.token_slices = options.token_slices; }

}  // namespace

Strategy token_slices() {
  return {{{"token_slices", &Options::token_slices, list_of<std::int64_t>(whole(1, 100'000'000)),
            "TeraPipe: tokens of every slice of a sequence; slices follow each other from stage to "
            "stage (with `gpipe` or `1f1b`, without `recompute`)",
            "whole"}},
          &slice_tokens};
}

}  // namespace stratagem::strategies

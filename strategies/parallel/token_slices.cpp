// TeraPipe: pipelines over slices of every sequence.
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {

/// op-trans of every micro-batch along its tokens. A slice of a causal model needs the keys and
/// values of the slices before it, which the same devices computed: cell (i, m, k) follows (i, m,
/// k-1) forward, and (i, m, k+1) backward, where the gradients of keys and values add up. Slices
/// pass from stage to stage one by one, so that a stage waits for one slice instead of one
/// micro-batch.
/// Source: Li et al., TeraPipe, ICML 2021, section 3.
void token_slices(Plan& plan, const Options& options) { plan.token_slices = options.token_slices; }

}  // namespace stratagem::strategies

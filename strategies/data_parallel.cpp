// Data parallelism: the batch is divided over ranks that all hold the model.
#include "strategies/all.hpp"

namespace stratagem::strategies {

/// op-trans of every operator along the batch dimension, one part per rank; operators without one
/// (none in a GPT) would be replicated. The lowering sees that weight gradients become partial sums
/// and reduces them. Source: Li et al., PyTorch Distributed, VLDB 2020, section 3.2 (buckets,
/// overlap).
void data_parallel(Plan& plan, const Options& options) {
  plan.gradients = {.overlap = options.overlap_gradients, .bucket = options.bucket};
  if (options.data == 1) return;
  const Axis ranks{.name = "data", .size = options.data, .stride = options.tensor};
  for (const model::OpId op : plan.operators()) {
    const bool batched = size_of_dimension(plan.graph(), plan.graph().operators[op], "b") > 0;
    plan.assign(plan.trans(op, {.dim = batched ? "b" : "", .parts = ranks.size}), ranks);
  }
}

}  // namespace stratagem::strategies

// Data parallelism: the batch is divided over ranks that all hold the model.
#include "strategies/all.hpp"

namespace stratagem::strategies {

std::string batch_dimension(const Plan& plan, model::OpId op) {
  return size_of_dimension(plan.graph(), plan.graph().operators[op], "b") > 0 ? "b" : "";
}

/// op-trans of every operator along the batch dimension, one part per rank; operators without one
/// (none in a GPT) would be replicated. The lowering sees that weight gradients become partial sums
/// and reduces them. Where experts are divided, this is the outer axis of two: it divides the batch
/// into one part for every group of `expert` ranks. Source: Li et al., PyTorch Distributed, VLDB
/// 2020, section 3.2 (buckets, overlap).
void data_parallel(Plan& plan, const Options& options) {
  plan.gradients = {.overlap = options.overlap_gradients, .bucket = options.bucket};
  const Axis ranks{.name = "data",
                   .size = options.data / options.expert,
                   .stride = options.data_stride() * options.expert};
  if (ranks.size == 1) return;
  for (const model::OpId op : plan.operators()) {
    plan.assign(plan.trans(op, {.dim = batch_dimension(plan, op), .parts = ranks.size}), ranks);
  }
}

}  // namespace stratagem::strategies

// Data parallelism: the batch is divided over ranks that all hold the model.
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {

std::string batch_dimension(const Plan& plan, model::OpId op) {
  return size_of_dimension(plan.graph(), plan.graph().operators[op], "b") > 0 ? "b" : "";
}

namespace {

void divide_batch(Plan& plan, const placement::Axis& ranks) {
  if (ranks.size == 1) return;
  for (const model::OpId op : plan.operators()) {
    plan.assign(plan.trans(op, {.dim = batch_dimension(plan, op), .parts = ranks.size}), ranks);
  }
}

}  // namespace

/// op-trans of every operator along the batch dimension, one part per rank; operators without one
/// (none in a GPT) would be replicated. The lowering sees that weight gradients become partial sums
/// and reduces them. Where experts are divided, this is the outer axis of two: it divides the batch
/// into one part for every group of `expert` ranks. Source: Li et al., PyTorch Distributed, VLDB
/// 2020, section 3.2 (buckets, overlap).
/// With ZeRO in groups of ranks, these are an axis of their own.
void data_parallel(Plan& plan, const Options& options) {
  plan.gradients = {.overlap = options.overlap_gradients,
                    .bucket = options.bucket,
                    .buffers = options.gradient_buffers};
  const int ranks = options.data / options.expert;
  const int stride = options.stride("dp") * options.expert;
  const int group = options.zero.ranks > 0 ? options.zero.ranks : ranks;
  divide_batch(plan, {.name = "replica", .size = ranks / group, .stride = stride * group});
  divide_batch(plan, {.name = "data", .size = group, .stride = stride});
}

}  // namespace stratagem::strategies

// Data parallelism: the batch is divided over ranks that all hold the model.
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {

std::string batch_dimension(const Plan& plan, model::OpId op) {
  return size_of_dimension(plan.graph(), plan.graph().operators[op], "b") > 0 ? "b" : "";
}

namespace {

void divide_along_batch(Plan& plan, const placement::Axis& ranks) {
  if (ranks.size == 1) return;
  for (const model::OpId op : plan.operators()) {
    plan.assign(plan.trans(op, {.dim = batch_dimension(plan, op), .parts = ranks.size}), ranks);
  }
}

/// op-trans of every operator along the batch dimension, one part per rank; operators without one
/// (none in a GPT) would be replicated. The lowering sees that weight gradients become partial sums
/// and reduces them. Where experts are divided, this is the outer axis of two: it divides the batch
/// into one part for every group of `expert` ranks. Source: Li et al., PyTorch Distributed, VLDB
/// 2020, section 3.2 (buckets, overlap).
/// With ZeRO in groups of ranks, these are an axis of their own, and in them those that keep
/// secondary parts together.
void divide_batch(Plan& plan, const Options& options) {
  plan.gradients = options.gradients;
  if (plan.gradients.buffers > 0)
    plan.said.gradients = path_of(&Options::gradients, &GradientReduction::buffers);
  const int ranks = options.data / options.expert;
  const int stride = stride_of(options, "dp") * options.expert;
  const int group = options.zero.ranks > 0 ? options.zero.ranks : ranks;
  divide_along_batch(plan, {.name = "replica", .size = ranks / group, .stride = stride * group});
  const int fewer = options.zero.after_forward > 1 ? options.zero.after_forward : group;
  divide_along_batch(plan, {.name = "group", .size = group / fewer, .stride = stride * fewer});
  divide_along_batch(plan, {.name = "data", .size = fewer, .stride = stride});
}

/// What ZeRO divides, it reduces as it comes, by default in buckets of 5e8 elements of two bytes as
/// DeepSpeed's reduce_bucket_size has it (deepspeed.ai/docs/config-json).
void complete_gradients(Options& options, const JsonReader& strategy) {
  const bool leave_or_are_divided =
      options.zero.stage >= 2 || options.offload.optimizer != HostPlace::none;
  if (leave_or_are_divided) {
    if (!strategy.has("overlap_gradients")) options.gradients.overlap = true;
    if (!options.gradients.bucket) options.gradients.bucket = 1_GB;
  } else if (const auto buffers = strategy.find("gradient_buffers")) {
    buffers->fail("zero 2 or 3, or the optimizer on the host, beside it: other gradients stay");
  }
}

}  // namespace

Strategy data_parallel() {
  using G = GradientReduction;
  constexpr auto gradients = &Options::gradients;
  return {{{"data", &Options::data, whole(1),
            "data parallelism: ranks that hold the whole model and divide the batch",
            "as many as the other degrees leave of the GPUs"},
           Option<Options>{
               "overlap_gradients", within(gradients, &G::overlap), flag(),
               "reduce gradients during the last backward pass, on a stream of their own; without "
               "`bucket` there is one reduction, at its end, and nothing to overlap with",
               "false; with `zero` 2 and 3 and with `offload` true"}
               .acting([](const Options& o) { return o.gradients.bucket.has_value(); }),
           {"bucket", within(gradients, &G::bucket), size(),
            "size of the pieces in which gradients are reduced",
            "one for all; with `zero` 2 and 3 and with `offload` 1 GB"},
           {"gradient_buffers", within(gradients, &G::buffers), whole(0, 16),
            "buffers of `bucket` bytes that exist from an iteration's first backward pass to its "
            "last, in which gradients wait that are reduced to shards or leave for the host; 0: "
            "each gradient in a buffer of its own"}},
          &divide_batch,
          &complete_gradients,
          {.name = "dp", .size = [](const Options& options) { return options.data; }}};
}

}  // namespace stratagem::strategies

// Turns buckets into calls, and steps after the last of them.
#include "strategies/lower/weight_updates.hpp"

#include <utility>

#include "strategies/lower/optimizer.hpp"

namespace stratagem::strategies {

WeightUpdates::WeightUpdates(const SequenceContext& context, int host, SequenceDraft& draft)
    : c_(context),
      host_(host),
      draft_(draft),
      cells_(context.order.hosts[host]),
      buckets_(gradient_buckets(context.plan, context.stages, *context.slices.front(),
                                context.parameters, host, cells_)) {
  for (const int site : c_.stages.hosts()[host].sites) {
    const Site& s = c_.stages.sites()[site];
    const int cell = last_weight_cell(c_.plan, s.stage, s.copy, cells_);
    const auto rank = [&](int index) { return std::pair(cells_[index].lag, index); };
    if (cell >= 0 && (last_cell_ < 0 || rank(last_cell_) < rank(cell))) last_cell_ = cell;
  }
}

void WeightUpdates::reduce_completed(int cell, int segment) {
  for (Bucket& bucket : buckets_.along_axes) {
    if (bucket.cell != cell || bucket.segment != segment) continue;
    reduce(bucket, cells_[cell]);
    bucket.gradients.clear();
  }
}

void WeightUpdates::finish() {
  const ScheduledCell& last = cells_[last_cell_];
  for (const Bucket& bucket : buckets_.along_axes) {
    if (!bucket.gradients.empty()) reduce(bucket, last);
  }
  for (const Bucket& bucket : buckets_.across_grids) reduce(bucket, last);
  add_steps(last);
}

int WeightUpdates::group_of(const Bucket& bucket) const {
  if (!bucket.ranks.empty()) return c_.groups.of({bucket.ranks}, -2);
  return bucket.grids.empty() ? c_.groups.along(grid_of(bucket), bucket.axes)
                              : c_.groups.across(bucket.grids, -1);
}

/// Along one axis of a stage's grid every stage of this host has the same group.
const Grid& WeightUpdates::grid_of(const Bucket& bucket) const {
  const Cell& cell = cells_[bucket.cell].cell;
  return draft_.site(cell.stage, cell).grid;
}

void WeightUpdates::reduce(const Bucket& bucket, const ScheduledCell& of) {
  const Written after = draft_.last_computation();
  Block block{.name = "reduce gradients", .slots = {}, .tasks = {Task{}}};
  Task& task = block.tasks.front();
  task.name = block.name;
  task.work = Collective{
      .kind = cost::CollectiveKind::all_reduce, .group = group_of(bucket), .payload = bucket.bytes};
  task.stream = Stream::gradient_communication;
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
    const model::TensorId gradient = bucket.gradients[i];
    task.reads.push_back(static_cast<int>(i));
    block.slots.push_back(
        {c_.plan.graph().tensors[gradient].name, gradient, bucket.sizes[i], Category::gradients});
  }
  task.writes = task.reads;
  last_reduction_ = draft_.add_call(c_.table.add(std::move(block)), -1, of);
  draft_.wait(last_reduction_, 0, after);
}

/// The first step waits for the last reduction.
void WeightUpdates::add_steps(const ScheduledCell& last) {
  bool first = true;
  for (StepBlock& step : step_blocks(c_.plan, c_.stack, c_.stages, c_.parameters, host_)) {
    const int block = draft_.shared(step.key, [&] { return std::move(step.block); });
    const int call = draft_.add_call(block, step.segment, last);
    if (std::exchange(first, false) && last_reduction_ >= 0)
      draft_.wait(call, 0, {last_reduction_, 0});
  }
}

}  // namespace stratagem::strategies

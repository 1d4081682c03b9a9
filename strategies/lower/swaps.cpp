// One call for every copy.
#include "strategies/lower/swaps.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace stratagem::strategies {
namespace {

bool swaps(const SequenceContext& context, const SegmentRun& run) {
  return std::ranges::binary_search(context.plan.swap.segments, run.segment) &&
         !context.slices.front()->left_by_forward(run.segment).empty();
}

}  // namespace

Swaps::Swaps(const SequenceContext& context, SequenceDraft& draft,
             const std::vector<SegmentRun>& runs)
    : AheadOfRuns(context, draft, backward(context, runs), context.plan.swap.prefetch) {}

std::vector<SegmentRun> Swaps::backward(const SequenceContext& context,
                                        const std::vector<SegmentRun>& runs) {
  std::vector<SegmentRun> result;
  std::set<Key> seen;
  for (const SegmentRun& run : runs) {
    if (run.of->cell.pass == CellPass::forward || !swaps(context, run)) continue;
    if (seen.emplace(run.segment, run.of->cell.micro_batch).second) result.push_back(run);
  }
  return result;
}

bool Swaps::leaves(const SegmentRun& run) const {
  return run.of->cell.repeat + 1 == context().plan.graph().forward_repeats && swaps(context(), run);
}

bool Swaps::comes_back(const SegmentRun& run) const {
  const std::optional<SegmentRun> next = next_run();
  return next && next->segment == run.segment && next->of->cell == run.of->cell;
}

void Swaps::copy_out(const SegmentRun& run, int call) {
  const int copy = draft().add_call(copy_block(run.segment, true), run.segment, *run.of);
  for (const int task : draft().last_of_queues(call)) draft().wait(copy, 0, {call, task});
  const std::size_t ahead = static_cast<std::size_t>(context().plan.swap.prefetch) + 1;
  if (out_.size() >= ahead) {
    for (const int task : draft().first_of_queues(call))
      draft().wait(call, task, out_[out_.size() - ahead]);
  }
  out_.push_back({copy, 0});
  left_[{run.segment, run.of->cell.micro_batch}] = {copy, 0};
}

bool Swaps::may_issue(std::size_t index) const {
  return left_.contains({run(index).segment, run(index).of->cell.micro_batch});
}

Written Swaps::issue(std::size_t index) {
  const SegmentRun& of = run(index);
  const int copy = draft().add_call(copy_block(of.segment, false), of.segment, *of.of);
  draft().wait(copy, 0, left_.at({of.segment, of.of->cell.micro_batch}));
  wait_for_room(index, copy);
  return {copy, 0};
}

void Swaps::connect(std::size_t index, int call) {
  for (const int task : draft().first_of_queues(call)) draft().wait(call, task, brought(index));
}

int Swaps::copy_block(int segment, bool out) const {
  const int forward = context().slices.front()->of(segment).forward->id;
  return draft().shared((out ? "out " : "in ") + std::to_string(forward),
                        [&] { return lowered_copy(segment, out); });
}

Block Swaps::lowered_copy(int segment, bool out) const {
  Block block{
      .name = (out ? "copy out " : "copy in ") + context().plan.graph().segments[segment].name,
      .slots = {},
      .tasks = {Task{}}};
  Task& task = block.tasks.front();
  Bytes total;
  for (const auto& [place, border] : context().slices.front()->left_by_forward(segment)) {
    const model::Tensor& tensor =
        context().plan.graph().tensors[context().stages.facts(segment).tensors[place]];
    const Bytes bytes =
        local_bytes(tensor, border.layout, context().stages.grid_of_segment(segment));
    const auto slot = static_cast<int>(block.slots.size());
    (out ? task.reads : task.writes).push_back(slot);
    (out ? task.deaths : task.births).push_back(slot);
    block.slots.push_back({tensor.name, place, bytes, border.category});
    total += bytes;
  }
  task.name = block.name;
  task.stream = out ? Stream::copy_out : Stream::copy_in;
  task.work =
      Collective{.kind = out ? cost::CollectiveKind::to_host : cost::CollectiveKind::from_host,
                 .group = context().groups.alone(),
                 .payload = total};
  return block;
}

}  // namespace stratagem::strategies

// Adds one call for every read and every write.
#include "lowering/updates/drive_staging.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lowering/residency/copy_task.hpp"

namespace stratagem::lowering {

using strategies::Keep;

namespace {

constexpr int buffers = 3;  // one is read, one steps, one is written

std::vector<SegmentRun> runs_of(const std::vector<StepBlock>& steps, const ScheduledCell& of) {
  std::vector<SegmentRun> runs;
  for (const StepBlock& step : steps) runs.push_back({.segment = step.segment, .of = &of});
  return runs;
}

}  // namespace

DriveStaging::DriveStaging(const SequenceContext& context, SequenceDraft& draft,
                           const std::vector<StepBlock>& steps, const ScheduledCell& of,
                           const Written& ready)
    : AheadOfRuns(context, draft, runs_of(steps, of), 1, buffers), of_(of), ready_(ready) {
  for (const StepBlock& step : steps) steps_.push_back(staged(step));
}

/// The buffer is known by the first gradient of the step, which has left for the host: no other
/// buffer has its name.
DriveStaging::Staged DriveStaging::staged(const StepBlock& step) const {
  const strategies::Plan& plan = context().plan;
  const auto there = [&](Keep::What what) { return plan.place_of(what) == Keep::Where::drives; };
  Staged result{.segment = step.segment, .tasks = static_cast<int>(step.parameters.size())};
  if (there(Keep::What::states)) result.read += step.states;
  if (there(Keep::What::parameters)) result.read += step.without_master;
  if (there(Keep::What::gradients)) result.read += step.gradients;
  if (there(Keep::What::states)) result.written += step.states;
  if (there(Keep::What::parameters)) result.written += step.bytes;
  const model::TensorId gradient = plan.graph().gradient_of[step.parameters.front()];
  result.buffer = staging_slot(context().stages.facts(step.segment).place.at(gradient),
                               std::max(result.read, result.written));
  return result;
}

void DriveStaging::before_step(StepBlock& step) {
  before_run();
  const Staged& staged = steps_[next()];
  const bool reads = staged.read > Bytes{}, writes = staged.written > Bytes{};
  if (reads && !writes) {
    step.block.tasks.back().frees.push_back(static_cast<int>(step.block.slots.size()));
  } else if (writes && !reads) {
    step.block.tasks.front().allocates.push_back(static_cast<int>(step.block.slots.size()));
  }
  if (reads == writes) return;
  step.block.slots.push_back(staged.buffer);
  step.key += " staged";
}

Written DriveStaging::issue(std::size_t i) {
  if (steps_[i].read <= Bytes{}) return {};
  const int call = move(steps_[i], true, false);
  if (i == 0 && ready_.call >= 0) draft().wait(call, 0, ready_);
  wait_for_room(i, call);
  return {call, 0};
}

void DriveStaging::connect(std::size_t i, int call) {
  if (brought(i).call >= 0) {
    draft().wait(call, 0, brought(i));
  } else if (steps_[i].written > Bytes{}) {
    wait_for_room(i, call);
  }
}

Written DriveStaging::end_of(std::size_t i, int call) {
  const Written stepped{call, steps_[i].tasks - 1};
  if (i + 1 < steps_.size()) return write(steps_[i], stepped, false);
  last_step_ = stepped;
  return {};
}

void DriveStaging::finish() {
  if (last_step_) write(steps_.back(), *last_step_, !context().plan.steps.delayed);
  last_step_.reset();
}

/// Adds a call of one task that moves bytes between the drives and the buffer of a step. A read
/// allocates the buffer and a write frees it.
int DriveStaging::move(const Staged& step, bool reads, bool waits) {
  const Bytes bytes = reads ? step.read : step.written;
  const std::string name = reads ? "read from drives" : "write to drives";
  const std::string key = name + " " + std::to_string(step.buffer.tensor) + " " +
                          std::to_string(bytes.value) + " " +
                          std::to_string(step.buffer.bytes.value) + (waits ? " end" : "");
  const int block = draft().shared(key, [&] {
    const auto kind = reads ? cost::CollectiveKind::from_drives : cost::CollectiveKind::to_drives;
    program::Task task = copy_task(context().groups, kind, name, bytes);
    (reads ? task.allocates : task.frees) = {0};
    task.synchronizations = waits ? 1 : 0;
    return program::Block{.name = name, .slots = {step.buffer}, .tasks = {task}};
  });
  return draft().add_call(block, step.segment, of_);
}

Written DriveStaging::write(const Staged& step, const Written& after, bool waits) {
  if (step.written <= Bytes{}) return after;
  const int call = move(step, false, waits);
  draft().wait(call, 0, after);
  return last_write_ = {call, 0};
}

}  // namespace stratagem::lowering

// Adds one call for every read and every write.
#include "lowering/updates/drive_staging.hpp"

#include <string>
#include <utility>

namespace stratagem::lowering {

using strategies::Keep;

namespace {

constexpr std::size_t buffers = 3;  // one is read, one steps, one is written

bool on_drives(const strategies::Plan& plan, Keep::What what) {
  return plan.place_of(what) == Keep::Where::drives;
}

}  // namespace

Bytes DriveStaging::read_of(const StepBlock& step) const {
  Bytes bytes;
  if (on_drives(c_.plan, Keep::What::states)) bytes += step.states;
  if (on_drives(c_.plan, Keep::What::parameters)) bytes += step.without_master;
  return bytes;
}

Bytes DriveStaging::written_of(const StepBlock& step) const {
  Bytes bytes;
  if (on_drives(c_.plan, Keep::What::states)) bytes += step.states;
  if (on_drives(c_.plan, Keep::What::parameters)) bytes += step.bytes;
  return bytes;
}

/// All that is written was read or made there. It is known by the first gradient of the step, which
/// has left for the host: no other buffer has its name.
program::Slot DriveStaging::buffer(const StepBlock& step) const {
  const model::TensorId gradient = c_.plan.graph().gradient_of[step.parameters.front()];
  return {.name = "staging",
          .tensor = c_.stages.facts(step.segment).place.at(gradient),
          .bytes = written_of(step),
          .category = program::Category::staged,
          .place = program::Residence::host};
}

void DriveStaging::wait_for_room(int call, std::size_t i) {
  if (i >= buffers && writes_[i - buffers].call >= 0) draft_.wait(call, 0, writes_[i - buffers]);
}

void DriveStaging::before_step(std::vector<StepBlock>& steps, std::size_t i,
                               const ScheduledCell& of, const Written& ready) {
  while (reads_.size() < steps.size() && reads_.size() <= i + 1)
    read(steps[reads_.size()], of, reads_.empty() ? ready : Written{});
  StepBlock& step = steps[i];
  if (reads_[i].call >= 0 || written_of(step) <= Bytes{}) return;
  step.block.tasks.front().allocates.push_back(static_cast<int>(step.block.slots.size()));
  step.block.slots.push_back(buffer(step));
  step.key += " staged";
}

void DriveStaging::after_step(const std::vector<StepBlock>& steps, std::size_t i,
                              const Written& last, const ScheduledCell& of) {
  if (reads_[i].call >= 0) draft_.wait(last.call, 0, reads_[i]);
  if (reads_[i].call < 0) wait_for_room(last.call, i);
  if (i + 1 < steps.size()) return write(steps[i], last, of, false);
  pending_ = Pending{.step = steps[i], .after = last, .of = &of};
}

void DriveStaging::finish() {
  if (!pending_) return;
  const Pending last = *std::exchange(pending_, std::nullopt);
  write(last.step, last.after, *last.of, true);
}

int DriveStaging::move(const StepBlock& step, bool reads, Bytes bytes, bool waits,
                       const ScheduledCell& of) {
  const std::string name = reads ? "read from drives" : "write to drives";
  const program::Slot room = buffer(step);
  const std::string key = name + " " + std::to_string(room.tensor) + " " +
                          std::to_string(bytes.value) + " " + std::to_string(room.bytes.value) +
                          (waits ? " end" : "");
  const int block = draft_.shared(key, [&] {
    using cost::CollectiveKind;
    program::Task task{};
    task.name = name;
    task.work =
        program::Collective{.kind = reads ? CollectiveKind::from_drives : CollectiveKind::to_drives,
                            .group = c_.groups.alone(),
                            .payload = bytes};
    task.stream = reads ? program::Stream::read_drives : program::Stream::write_drives;
    (reads ? task.allocates : task.frees) = {0};
    task.synchronizations = waits ? 1 : 0;
    return program::Block{.name = name, .slots = {room}, .tasks = {task}};
  });
  return draft_.add_call(block, step.segment, of);
}

void DriveStaging::read(const StepBlock& step, const ScheduledCell& of, const Written& ready) {
  const std::size_t index = reads_.size();
  reads_.emplace_back();
  const Bytes bytes = read_of(step);
  if (bytes <= Bytes{}) return;
  const int call = move(step, true, bytes, false, of);
  if (ready.call >= 0) draft_.wait(call, 0, ready);
  wait_for_room(call, index);
  reads_.back() = {call, 0};
}

void DriveStaging::write(const StepBlock& step, const Written& after, const ScheduledCell& of,
                         bool ends) {
  writes_.emplace_back();
  const Bytes bytes = written_of(step);
  if (bytes <= Bytes{}) return;
  const int call = move(step, false, bytes, ends && !c_.plan.steps.delayed, of);
  draft_.wait(call, 0, after);
  writes_.back() = last_write_ = {call, 0};
}

}  // namespace stratagem::lowering

// Builds the sequence of a device class: adds calls and what they wait for.
#include "lowering/draft/sequence_draft.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using program::Resident;
using program::Stream;
using program::Task;

int SequenceDraft::add_call(int block, int segment, const ScheduledCell& of, int on_stage) {
  const int replica = replica_of(of.cell.stage, of.cell);
  const int here = on_stage < 0 ? replica : replica_of(on_stage, of.cell);
  const int behind = c_.versions[replica].behind[of.cell.micro_batch];
  calls_.push_back({.block = block,
                    .segment = segment,
                    .grid = c_.stages.irregular(of.cell.stage) ? -1 : here,
                    .cell = of.cell,
                    .lag = of.lag,
                    .versions_behind = behind,
                    .waits = {}});
  return static_cast<int>(calls_.size()) - 1;
}

void SequenceDraft::wait(int call, int task, const Written& earlier) {
  calls_[call].waits.push_back({task, earlier.call, earlier.task});
}

int SequenceDraft::shared(const std::string& key, const std::function<program::Block()>& make) {
  const auto lower = [&] {
    LoweredBlock lowered;
    lowered.block = make();
    return lowered;
  };
  return c_.table.shared(key, lower).id;
}

const std::vector<Task>& SequenceDraft::tasks_of(int call) const {
  return c_.table[calls_[call].block].tasks;
}

Stream SequenceDraft::stream_of(const Written& task) const {
  return tasks_of(task.call)[task.task].stream;
}

void SequenceDraft::launch_whole(int end) {
  for (; launched_ < end; ++launched_) {
    const auto tasks = static_cast<int>(tasks_of(launched_).size());
    if (tasks > 0) sequence_.launches.push_back({launched_, 0, tasks});
  }
}

void SequenceDraft::launch_in(std::vector<program::Launch> launches, int first) {
  launch_whole(first);
  sequence_.launches.insert(sequence_.launches.end(), launches.begin(), launches.end());
  launched_ = static_cast<int>(calls_.size());
}

std::optional<Written> SequenceDraft::last_computation_of(const program::Launch& launch) const {
  const std::vector<Task>& tasks = tasks_of(launch.call);
  for (int task = launch.end; task-- > launch.first;) {
    if (tasks[task].stream == Stream::compute) return Written{launch.call, task};
  }
  return std::nullopt;
}

std::optional<Written> SequenceDraft::computed() const {
  for (int call = static_cast<int>(calls_.size()); call-- > launched_;) {
    const auto tasks = static_cast<int>(tasks_of(call).size());
    if (const auto last = last_computation_of({call, 0, tasks})) return last;
  }
  for (std::size_t launch = sequence_.launches.size(); launch-- > 0;) {
    if (const auto last = last_computation_of(sequence_.launches[launch])) return last;
  }
  return std::nullopt;
}

Written SequenceDraft::last_computation() const {
  const std::optional<Written> last = computed();
  expects(last.has_value(), "something was computed before anything waits for it");
  return *last;
}

std::vector<int> SequenceDraft::first_of_queues(int call) const {
  std::vector<int> result;
  for (const auto& [queue, ends] : queues_of(call)) result.push_back(ends.first);
  std::ranges::sort(result);
  return result;
}

std::vector<int> SequenceDraft::last_of_queues(int call) const {
  std::vector<int> result;
  for (const auto& [queue, ends] : queues_of(call)) result.push_back(ends.second);
  std::ranges::sort(result);
  return result;
}

std::map<std::pair<Stream, int>, std::pair<int, int>> SequenceDraft::queues_of(int call) const {
  std::map<std::pair<Stream, int>, std::pair<int, int>> queues;
  const std::vector<Task>& tasks = tasks_of(call);
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const auto* collective = std::get_if<program::Collective>(&tasks[t].work);
    const int group = transfers(tasks[t].stream) ? collective->group : -1;
    const auto task = static_cast<int>(t);
    queues.try_emplace({tasks[t].stream, group}, task, task).first->second.second = task;
  }
  return queues;
}

bool SequenceDraft::runs_replica(int replica) const {
  const std::vector<int>& replicas = c_.stages.device_classes()[device_class_].replicas;
  return std::ranges::find(replicas, replica) != replicas.end();
}

std::optional<Resident::Span> SequenceDraft::gradient_span(model::TensorId parameter) const {
  const auto first = added_.find(c_.plan.graph().gradient_of[parameter]);
  const auto last = stepped_.find(parameter);
  if (first == added_.end() || last == stepped_.end()) return std::nullopt;
  return Resident::Span{first->second, last->second};
}

std::optional<Resident::Span> SequenceDraft::steps_span() const {
  const auto place = [](const auto& stepped) {
    return std::pair(stepped.second.call, stepped.second.task);
  };
  if (stepped_.empty()) return std::nullopt;
  const auto [first, last] = std::ranges::minmax_element(stepped_, {}, place);
  return Resident::Span{first->second, last->second};
}

std::optional<Resident::Span> SequenceDraft::backward_span() const {
  const std::optional<Resident::Span> steps = steps_span();
  const int end = steps ? steps->first.call : static_cast<int>(calls_.size());
  std::optional<Resident::Span> span;
  for (int call = 0; call < end; ++call) {
    if (calls_[call].cell.pass == placement::CellPass::forward) continue;
    const std::vector<Task>& tasks = tasks_of(call);
    for (int task = 0; task < static_cast<int>(tasks.size()); ++task) {
      const Stream stream = tasks[task].stream;  // others run ahead, or behind
      if (stream != Stream::compute && stream != Stream::gradient_communication) continue;
      if (!span) span = {.first = {call, task}, .last = {}};
      span->last = {call, task};
    }
  }
  return span;
}

program::Sequence SequenceDraft::finish(std::vector<Resident> residents) {
  if (launched_ > 0) launch_whole(static_cast<int>(calls_.size()));
  sequence_.calls = std::move(calls_);
  sequence_.residents = std::move(residents);
  return std::move(sequence_);
}

}  // namespace stratagem::lowering

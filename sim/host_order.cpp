// Sorts changes by task, and looks up when the host reached each task.
#include "sim/host_order.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace stratagem::sim {
namespace {

/// By task: the cell that the host is at when it comes to it. A gather for a later cell belongs to
/// the cell amid which it is issued; cells that take turns begin as one.
std::vector<placement::Cell> cells_of(const program::Sequence& sequence,
                                      const std::vector<FlatTask>& tasks) {
  std::vector<placement::Cell> cells(tasks.size());
  const std::vector<int> first = program::first_beside(sequence);
  for (std::size_t i = tasks.size(); i-- > 0;) {
    const bool ahead = tasks[i].stream == program::Stream::parameter_communication;
    cells[i] =
        ahead && i + 1 < tasks.size() ? cells[i + 1] : sequence.calls[first[tasks[i].call]].cell;
  }
  return cells;
}

/// Does the actor exchange messages with other stages?
bool exchanges(const std::vector<FlatTask>& tasks) {
  return std::ranges::any_of(tasks, [](const FlatTask& t) { return program::transfers(t.stream); });
}

/// The host waits before backward passes of stages below this one: of all where it waits for each
/// pass; where it reads what stages receive, of all but the last, whose passes begin with its own
/// loss.
int waits_backward_below(const program::Program& program, const std::vector<FlatTask>& tasks,
                         const cost::Stack& stack) {
  if (stack.host_waits == cost::HostWaits::each_pass) return std::numeric_limits<int>::max();
  if (stack.stage_exchanges != cost::StageExchanges::read || !exchanges(tasks)) return 0;
  int last = 0;
  for (const program::Sequence& sequence : program.sequences) {
    for (const program::StoredCall& call : sequence.calls.stored())
      last = std::max(last, call.cell.stage);
  }
  return last;
}

/// Does the host wait for the device before a task: the first of a forward cell, or of a backward
/// one of a stage below that?
bool waits_before(const std::vector<placement::Cell>& cells, std::size_t i, int below) {
  if (cells[i].pass != placement::CellPass::forward && cells[i].stage >= below) return false;
  return i == 0 || cells[i - 1] != cells[i];
}

/// By task: what a gather of parameters is ordered behind, such as the end of the layer whose room
/// it takes. Others are ordered on the device alone.
std::vector<std::vector<std::size_t>> orders_of_gathers(const program::Sequence& sequence,
                                                        const std::vector<FlatTask>& tasks) {
  std::map<std::pair<int, int>, std::size_t> place;  // by call and task
  for (std::size_t i = 0; i < tasks.size(); ++i) place[{tasks[i].call, tasks[i].task}] = i;
  std::vector<std::vector<std::size_t>> result(tasks.size());
  for (std::size_t c = 0; c < sequence.calls.size(); ++c) {
    for (const program::Wait& wait : sequence.calls[c].waits) {
      const std::size_t i = place.at({static_cast<int>(c), wait.task});
      if (tasks[i].stream == program::Stream::parameter_communication)
        result[i].push_back(place.at({wait.of_call, wait.of_task}));
    }
  }
  return result;
}

/// The host's clock by task of the first rounds, in the order of MemoryChange::task.
std::vector<Instant> host_clock(const program::Program& program, const Timeline& timeline,
                                std::size_t actor, const cost::Stack& stack) {
  const ActorTimes& times = timeline.times[actor];
  const std::vector<FlatTask>& tasks = timeline.tasks[timeline.actors[actor].sequence];
  const program::Sequence& sequence = program.sequences[timeline.actors[actor].sequence];
  const std::vector<std::vector<std::size_t>> orders = orders_of_gathers(sequence, tasks);
  const std::vector<placement::Cell> cells = cells_of(sequence, tasks);
  const int below = waits_backward_below(program, tasks, stack);
  std::vector<Instant> clock;
  std::deque<std::pair<Instant, int>> pending;  // ends of computations, and their launches
  int launches = 0;
  Instant now{0};
  Instant last{0};  // end of all that is launched
  for (std::size_t round = 0; round < times.launches.size(); ++round) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto& work = program.blocks[tasks[i].block].tasks[tasks[i].task].work;
      const auto* kernel = std::get_if<cost::Kernel>(&work);
      now = std::max(now, times.launches[round][i]);
      if (waits_before(cells, i, below)) now = std::max(now, last);
      for (const std::size_t before : orders[i]) now = std::max(now, times.ends[round][before]);
      if (program::runs_on_device(tasks[i].stream)) last = std::max(last, times.ends[round][i]);
      if (kernel != nullptr && times.ends[round][i] != never_ran) {
        pending.emplace_back(times.ends[round][i], kernel->launches);
        launches += kernel->launches;
      }
      for (; launches > most_pending_launches && pending.size() > 1; pending.pop_front()) {
        now = std::max(now, pending.front().first);
        launches -= pending.front().second;
      }
      clock.push_back(now);
    }
  }
  return clock;
}

/// As if the host did everything when the device does it.
std::vector<HostChange> in_device_order(const std::vector<MemoryChange>& changes) {
  std::vector<HostChange> result;
  for (const MemoryChange& change : changes)
    result.push_back({change.when, change.buffer, change.bytes, Instant{0}});
  return result;
}

}  // namespace

std::vector<HostChange> in_host_order(const program::Program& program, const Timeline& timeline,
                                      std::size_t actor, const std::vector<MemoryChange>& changes,
                                      const cost::Stack& stack) {
  const bool waits_always = stack.host_waits == cost::HostWaits::each_launch ||
                            (stack.stage_exchanges == cost::StageExchanges::waited_for &&
                             exchanges(timeline.tasks[timeline.actors[actor].sequence]));
  if (waits_always) return in_device_order(changes);
  const std::vector<Instant> clock = host_clock(program, timeline, actor, stack);
  std::vector<const MemoryChange*> order;
  for (const MemoryChange& change : changes) order.push_back(&change);
  std::ranges::stable_sort(order, {}, [](const MemoryChange* change) {
    return std::tuple(change->task, change->bytes < Bytes{});
  });
  std::vector<HostChange> result;
  for (const MemoryChange* change : order)
    result.push_back({clock[change->task], change->buffer, change->bytes, change->ready});
  return result;
}

}  // namespace stratagem::sim

// Sorts by task, and looks up when the host came to each.
#include "sim/host_order.hpp"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

namespace stratagem::sim {
namespace {

/// The host's clock by task of the first rounds, in the order of MemoryChange::task.
std::vector<Instant> host_clock(const strategies::Program& program, const Timeline& timeline,
                                std::size_t actor) {
  const ActorTimes& times = timeline.times[actor];
  const std::vector<FlatTask>& tasks = timeline.tasks[timeline.actors[actor].sequence];
  std::vector<Instant> clock;
  std::deque<std::pair<Instant, int>> pending;  // ends of computations, and their launches
  int launches = 0;
  Instant now{0};
  for (std::size_t round = 0; round < times.launches.size(); ++round) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto& work = program.blocks[tasks[i].block].tasks[tasks[i].task].work;
      const auto* kernel = std::get_if<cost::Kernel>(&work);
      now = std::max(now, times.launches[round][i]);
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

}  // namespace

std::vector<HostChange> in_host_order(const strategies::Program& program, const Timeline& timeline,
                                      std::size_t actor, const std::vector<MemoryChange>& changes) {
  const std::vector<Instant> clock = host_clock(program, timeline, actor);
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

// Prices of kernels, and collectives alone on their links.
#include "study/least_times.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace stratagem::study {

LeastTimes::LeastTimes(const program::Program& program, const sim::Prices& prices, const Run& run)
    : program_(program),
      prices_(prices),
      collectives_(run.cluster, run.profile.collective, run.stack.nccl) {
  for (std::size_t d = 0; d < program.devices.size(); ++d)
    devices_[program.devices[d].sequence].push_back(static_cast<int>(d));
}

Picoseconds LeastTimes::of_task(int block, int task, int device_class) {
  const auto& work = program_.blocks[block].tasks[task].work;
  const auto* collective = std::get_if<program::Collective>(&work);
  if (collective == nullptr) return prices_[block][task].device.count;
  const auto [known, added] = collective_times_.try_emplace({block, task, device_class});
  if (added) known->second = least(*collective, device_class);
  return known->second;
}

const std::vector<Picoseconds>& LeastTimes::ends(int block, int device_class, int from) {
  const auto [known, added] = ends_.try_emplace({block, device_class, from});
  if (added) known->second = found(block, device_class, from);
  return known->second;
}

Picoseconds LeastTimes::computing(int block) {
  const std::vector<program::Task>& tasks = program_.blocks[block].tasks;
  Picoseconds sum = 0;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const bool computes = std::holds_alternative<cost::Kernel>(tasks[t].work);
    if (computes && tasks[t].stream == program::Stream::compute)
      sum += prices_[block][t].device.count;
  }
  return sum;
}

std::vector<Picoseconds> LeastTimes::found(int block, int device_class, int from) {
  const std::vector<program::Task>& tasks = program_.blocks[block].tasks;
  std::map<program::Stream, Picoseconds> queues;
  queues[program::Stream::compute] = from < 0 ? 0 : never_reached;
  std::vector<Picoseconds> result;
  for (int t = 0; t < static_cast<int>(tasks.size()); ++t) {
    Picoseconds& free = queues.try_emplace(tasks[t].stream, never_reached).first->second;
    for (const int earlier : tasks[t].waits) free = std::max(free, result[earlier]);
    if (t == from) free = std::max<Picoseconds>(free, 0);
    if (free >= 0) free += of_task(block, t, device_class);
    result.push_back(free);
  }
  result.push_back(queues.at(program::Stream::compute));
  return result;
}

/// On whichever devices of the class it takes the least.
Picoseconds LeastTimes::least(const program::Collective& collective, int device_class) {
  constexpr Picoseconds rounding = 2;
  std::set<int> groups;
  for (const int d : devices_.at(device_class)) {
    const program::Device& device = program_.devices[d];
    if (!program::crosses_links(program_, device, collective)) return 0;
    groups.insert(device.groups[collective.group]);
  }
  Picoseconds shortest = std::numeric_limits<Picoseconds>::max();
  for (const int group : groups) {
    const cost::Route route = collectives_.route(
        collective.kind, program_.communicators[group].ranks, collective.payload);
    const double alone = std::floor(collectives_.alone(route, collective.payload).value * 1e12);
    shortest = std::min(shortest, static_cast<Picoseconds>(alone) - rounding);
  }
  return std::max<Picoseconds>(shortest, 0);
}

}  // namespace stratagem::study

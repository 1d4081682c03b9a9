// Goes through the tasks of a round.
#include "report/traces/collectives.hpp"

#include <variant>

namespace stratagem::report {

std::vector<DeviceCollective> collectives_of(const program::Program& program,
                                             const sim::Timeline& timeline, int device) {
  const program::Device& own = program.devices[device];
  const sim::FlatTasks& tasks = timeline.tasks[own.sequence];
  std::vector<DeviceCollective> result;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const program::Task& task = program.blocks[tasks[i].block].tasks[tasks[i].task];
    const auto* collective = std::get_if<program::Collective>(&task.work);
    const int communicator = collective == nullptr ? -1 : own.groups[collective->group];
    if (communicator < 0) continue;  // it computes, or is of one rank
    result.push_back({.task = static_cast<int>(i),
                      .lag = program.sequences[own.sequence].calls[tasks[i].call].lag,
                      .communicator = communicator,
                      .collective = *collective});
  }
  return result;
}

}  // namespace stratagem::report

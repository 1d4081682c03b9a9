// Finds the task of a weight by its group.
#include "strategies/lower/gather_tasks.hpp"

#include <utility>

#include "strategies/lower/shards.hpp"

namespace stratagem::strategies {

GatherTasks::GatherTasks(Groups& groups, std::string name, Stream stream, int purpose)
    : groups_(groups), name_(std::move(name)), stream_(stream), purpose_(purpose) {}

Task& GatherTasks::add(const LocalHolding& local) {
  const int group = groups_.along(local.grid, local.shards, purpose_);
  const auto [found, fresh] = tasks_.try_emplace(group);
  Task& task = found->second;
  if (fresh) {
    task.name = name_ + " over " + axis_names(local.grid, local.shards);
    task.stream = stream_;
    task.work = Collective{.kind = cost::CollectiveKind::all_gather, .group = group};
    task.operations = {{.deed = Deed::convert}};
  }
  std::get<Collective>(task.work).payload += local.bytes;
  Operation& gather = task.operations.front();
  gather.inputs.push_back({.layout = local.holding->layout, .shards = local.shards});
  gather.outputs.push_back({.layout = local.holding->layout});
  return task;
}

void GatherTasks::append_to(Block& block) {
  for (auto& [group, task] : tasks_) block.tasks.push_back(std::move(task));
}

}  // namespace stratagem::strategies

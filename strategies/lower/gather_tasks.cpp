// Finds the task of a weight by its group.
#include "strategies/lower/gather_tasks.hpp"

#include <string>
#include <utility>

#include "strategies/lower/shard_collectives.hpp"
#include "strategies/lower/shards.hpp"

namespace stratagem::strategies {

GatherTasks::GatherTasks(Groups& groups, std::string name, Stream stream, int purpose,
                         const cost::ShardCollectives& facts)
    : groups_(groups), name_(std::move(name)), stream_(stream), purpose_(purpose), facts_(facts) {}

GatherTasks::GatherTasks(Groups& groups, std::string name, Stream stream,
                         const cost::StepGathers& facts)
    : GatherTasks(groups, std::move(name), stream, 0,
                  cost::ShardCollectives{.kernels_per_rank = facts.kernels_per_rank}) {
  at_once_ = facts.at_once;
}

int GatherTasks::next_of(int group) {
  const auto [last, first] = last_.try_emplace(group, 0);
  if (first) return 0;
  const Bytes taken = std::get<Collective>(gathers_.at({group, last->second}).task.work).payload;
  const bool full = at_once_ > Bytes{} && taken >= at_once_;
  if (facts_.by_weight || full) ++last->second;
  return last->second;
}

Task& GatherTasks::add(const LocalHolding& local) {
  const bool alone = local.shards.empty();
  const int group = alone ? groups_.alone() : groups_.along(local.grid, local.shards, purpose_);
  const int which = next_of(group);
  const auto [found, fresh] = gathers_.try_emplace({group, which});
  Task& task = found->second.task;
  if (fresh) {
    task.name = name_ + (alone ? " alone" : " over " + axis_names(local.grid, local.shards));
    if (which > 0 && !facts_.by_weight) task.name += ", part " + std::to_string(which + 1);
    task.stream = stream_;
    task.work = Collective{.kind = cost::CollectiveKind::all_gather, .group = group};
    task.operations = {{.deed = Deed::convert}};
    found->second.ranks = ranks_along(local.grid, local.shards);
  }
  std::get<Collective>(task.work).payload += local.bytes;
  Operation& gather = task.operations.front();
  gather.inputs.push_back({.layout = local.holding->layout, .shards = local.shards});
  gather.outputs.push_back({.layout = local.holding->layout});
  return task;
}

void GatherTasks::append_to(Block& block) {
  for (auto& [key, gather] : gathers_) {
    if (facts_.by_weight) gather.task.name += ": " + block.slots[gather.task.writes.front()].name;
    append_gather(block, std::move(gather.task), gather.ranks, facts_);
  }
}

}  // namespace stratagem::strategies

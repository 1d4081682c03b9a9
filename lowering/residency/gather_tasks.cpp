// Finds the gather task of a weight by its group.
#include "lowering/residency/gather_tasks.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lowering/residency/shard_collectives.hpp"
#include "lowering/stages/shards.hpp"

namespace stratagem::lowering {

using program::Collective;
using program::Task;

GatherTasks::GatherTasks(Groups& groups, std::string name, program::Stream stream, int purpose,
                         const cost::ShardCollectives& facts)
    : groups_(groups), name_(std::move(name)), stream_(stream), purpose_(purpose), facts_(facts) {}

GatherTasks::GatherTasks(Groups& groups, std::string name, program::Stream stream, int purpose,
                         const cost::StepGathers& facts)
    : GatherTasks(groups, std::move(name), stream, purpose,
                  cost::ShardCollectives{.kernels_per_rank = facts.kernels_per_rank}) {
  bucket_ = facts.bucket;
}

void GatherTasks::join() {
  const auto payload = [](Gather& gather) -> Bytes& {
    return std::get<Collective>(gather.task.work).payload;
  };
  const auto append = [](auto& list, const auto& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  std::map<int, Bytes> all, before;  // by group
  for (auto& [key, gather] : gathers_) all[key.first] += payload(gather);
  std::map<std::pair<int, int>, Gather> joined;
  for (auto& [key, gather] : gathers_) {
    const int group = key.first;
    const double parts = std::max(1.0, std::floor(all[group] / bucket_));
    const auto part = static_cast<int>(parts * (before[group] / all[group]));
    before[group] += payload(gather);
    const auto [found, fresh] = joined.try_emplace({group, part}, gather);
    if (fresh) continue;
    Task& task = found->second.task;
    payload(found->second) += payload(gather);
    append(task.reads, gather.task.reads);
    append(task.writes, gather.task.writes);
    append(task.operations.front().inputs, gather.task.operations.front().inputs);
    append(task.operations.front().outputs, gather.task.operations.front().outputs);
  }
  gathers_ = std::move(joined);
  for (auto& [key, gather] : gathers_)
    if (key.second > 0) gather.task.name += ", part " + std::to_string(key.second + 1);
}

Task& GatherTasks::add(const LocalHolding& local, const Division& from, const Division* to) {
  std::vector<int> axes = without(from.axes, to == nullptr ? std::vector<int>{} : to->axes);
  std::ranges::sort(axes);
  const bool alone = axes.empty();
  const int group = alone ? groups_.alone() : groups_.along(local.grid, axes, purpose_);
  const int weight = facts_.by_weight || bucket_ > Bytes{} ? weights_++ : 0;
  const auto [found, fresh] = gathers_.try_emplace({group, weight});
  Task& task = found->second.task;
  if (fresh) {
    task.name = name_ + (alone ? " alone" : " over " + axis_names(local.grid, axes));
    task.stream = stream_;
    task.work = Collective{.kind = cost::CollectiveKind::all_gather, .group = group};
    task.operations = {{.action = program::Action::convert}};
    found->second.ranks = ranks_along(local.grid, axes);
  }
  std::get<Collective>(task.work).payload +=
      to == nullptr ? local.gathered_scale * local.bytes : to->bytes;
  program::Operation& gather = task.operations.front();
  gather.inputs.push_back({.layout = local.holding->layout, .shards = from.axes});
  gather.outputs.push_back({.layout = local.holding->layout});
  if (to != nullptr) gather.outputs.back().shards = to->axes;
  return task;
}

void GatherTasks::append_to(program::Block& block) {
  if (bucket_ > Bytes{}) join();
  for (auto& [key, gather] : gathers_) {
    if (facts_.by_weight) gather.task.name += ": " + block.slots[gather.task.writes.front()].name;
    append_gather(block, std::move(gather.task), gather.ranks, facts_);
  }
}

}  // namespace stratagem::lowering

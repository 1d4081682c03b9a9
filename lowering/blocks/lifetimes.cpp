// Finds the first and last use of every slot; tracks for every task what has ended before it ends:
// for each queue, the last such task.
#include "lowering/blocks/lifetimes.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace stratagem::lowering {

using program::Block;
using program::Stream;
using program::Task;

namespace {

using Queue = std::pair<Stream, int>;
/// By queue: its last task that has ended for sure.
using Ended = std::map<Queue, int>;

Queue queue_of(const Task& task) {
  if (!transfers(task.stream)) return {task.stream, -1};
  return {task.stream, std::get<program::Collective>(task.work).group};
}

std::vector<Ended> ended_with(const Block& block) {
  std::vector<Ended> result;
  std::map<Queue, int> last;
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    Ended ended;
    const auto join = [&](int earlier) {
      for (const auto& [queue, task] : result[earlier]) {
        const auto place = ended.emplace(queue, task).first;
        place->second = std::max(place->second, task);
      }
    };
    const Queue queue = queue_of(block.tasks[t]);
    if (const auto before = last.find(queue); before != last.end()) join(before->second);
    for (const int wait : block.tasks[t].waits) join(wait);
    ended[queue] = last[queue] = static_cast<int>(t);
    result.push_back(std::move(ended));
  }
  return result;
}

bool follows(const Ended& ended, const Block& block, int use) {
  const auto found = ended.find(queue_of(block.tasks[use]));
  return found != ended.end() && found->second >= use;
}

void add_waits(Task& task, const std::vector<int>& earlier) {
  task.waits.insert(task.waits.end(), earlier.begin(), earlier.end());
  std::ranges::sort(task.waits);
  task.waits.erase(std::unique(task.waits.begin(), task.waits.end()), task.waits.end());
}

}  // namespace

Task idle_task(std::string name) {
  Task task{};
  task.name = std::move(name);
  task.work = cost::Kernel{.kind = cost::KernelKind::elementwise, .launches = 0};
  return task;
}

std::map<int, std::vector<int>> uses_by_slot(const Block& block) {
  std::map<int, std::vector<int>> uses;
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    for (const auto* slots : {&block.tasks[t].reads, &block.tasks[t].writes}) {
      for (const int slot : *slots) uses[slot].push_back(static_cast<int>(t));
    }
  }
  return uses;
}

void join_streams(Block& block, const std::set<int>& survivors) {
  const std::vector<Ended> ended = ended_with(block);
  Ended computed;  // with the last computation
  for (std::size_t t = 0; t < block.tasks.size(); ++t) {
    if (block.tasks[t].stream == Stream::compute) computed = ended[t];
  }
  Task join = idle_task("join streams");
  for (const auto& [slot, uses] : uses_by_slot(block)) {
    const bool survives = survivors.contains(slot);
    const Ended& last = survives ? computed : ended[uses.back()];
    std::vector<int> loose;
    for (const int use : uses) {
      const Task& task = block.tasks[use];
      const bool writes = std::ranges::find(task.writes, slot) != task.writes.end();
      if (!follows(last, block, use) && !(survives && writes)) loose.push_back(use);
    }
    if (loose.empty()) continue;
    if (!survives && program::transfers(block.tasks[uses.back()].stream)) {
      add_waits(block.tasks[uses.back()], loose);
      continue;
    }
    if (!survives) loose.push_back(uses.back());
    join.reads.push_back(slot);
    std::erase_if(loose, [&](int use) { return block.tasks[use].stream == Stream::compute; });
    add_waits(join, loose);
  }
  if (join.reads.empty()) return;
  block.tasks.push_back(std::move(join));
}

void set_lifetimes(program::Block& block, const std::set<int>& external,
                   const std::set<int>& survivors) {
  if (block.tasks.empty()) return;
  const std::map<int, std::vector<int>> uses = uses_by_slot(block);
  for (int slot = 0; slot < static_cast<int>(block.slots.size()); ++slot) {
    const auto used = uses.find(slot);
    if (used != uses.end() && !external.contains(slot))
      block.tasks[used->second.front()].allocates.push_back(slot);
    if (survivors.contains(slot)) continue;
    (used == uses.end() ? block.tasks.back() : block.tasks[used->second.back()])
        .frees.push_back(slot);
  }
}

}  // namespace stratagem::lowering

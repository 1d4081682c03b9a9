// Adds kernels before and after collectives, on their stream.
#include "lowering/residency/shard_collectives.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace stratagem::lowering {

using program::Block;
using program::Task;

namespace {

/// Beside a collective: what moves `traffic` in so many launches.
Task kernel_beside(const Task& collective, const std::string& does, Bytes traffic, int launches) {
  cost::Kernel kernel;
  kernel.kind = cost::KernelKind::elementwise;
  kernel.traffic = traffic;
  kernel.launches = launches;
  Task task{};
  task.name = does + " " + collective.name;
  task.work = kernel;
  task.stream = collective.stream;
  task.operations = {{.action = program::Action::select}};  // of nothing: values stay as they are
  return task;
}

Bytes payload(const Task& collective) {
  return std::get<program::Collective>(collective.work).payload;
}

/// One slot more, as large as what a collective leaves or takes whole, of the tensor of another.
int second_buffer(Block& block, const Task& collective, int of) {
  block.slots.push_back({.name = block.slots[of].name + ", flat",
                         .tensor = block.slots[of].tensor,
                         .bytes = payload(collective)});
  return static_cast<int>(block.slots.size()) - 1;
}

/// Allocates, and waits, in front of a gather, in its place.
Task clearing(Task& gather) {
  Task clear = kernel_beside(gather, "clear", payload(gather), 1);
  clear.writes = gather.writes;
  clear.allocates = std::exchange(gather.allocates, {});
  clear.waits = std::exchange(gather.waits, {});
  clear.synchronizations = 1;
  return clear;
}

Task copying(const Task& collective, int ranks, const cost::ShardCollectives& facts) {
  return kernel_beside(collective, "parts of", 2 * payload(collective),
                       facts.kernels_per_rank * ranks);
}

}  // namespace

void append_gather(Block& block, Task gather, int ranks, const cost::ShardCollectives& facts) {
  if (facts.gathers_wait) block.tasks.push_back(clearing(gather));
  if (facts.kernels_per_rank == 0) {
    block.tasks.push_back(std::move(gather));
    return;
  }
  Task copy = copying(gather, ranks, facts);
  copy.writes = gather.writes;
  const int flat = second_buffer(block, gather, gather.writes.front());
  copy.reads = copy.frees = {flat};
  gather.writes.push_back(flat);
  gather.allocates.push_back(flat);
  block.tasks.push_back(std::move(gather));
  block.tasks.push_back(std::move(copy));
}

void append_scatter(Block& block, Task scatter, int ranks, const cost::ShardCollectives& facts) {
  if (facts.kernels_per_rank > 0) {
    Task copy = copying(scatter, ranks, facts);
    copy.reads = scatter.reads;
    const int flat = second_buffer(block, scatter, scatter.reads.front());
    copy.writes = copy.allocates = {flat};
    scatter.reads.push_back(flat);
    scatter.frees.push_back(flat);
    block.tasks.push_back(std::move(copy));
  }
  block.tasks.push_back(std::move(scatter));
}

void append_accumulation(Block& block, Bytes shard, const cost::OperatorKernels& rule) {
  if (rule.extra_passes == 0) return;
  Task& scatter = block.tasks.back();
  const int launches = std::max(1, rule.launches) * static_cast<int>(scatter.writes.size());
  Task add = kernel_beside(scatter, "add", rule.extra_passes * shard, launches);
  add.reads = scatter.reads;
  add.writes = scatter.writes;
  add.frees = std::exchange(scatter.frees, {});
  block.tasks.push_back(std::move(add));
}

}  // namespace stratagem::lowering

// Adds one call of gathers for every run of a segment that reads weights.
#include "lowering/residency/gathers.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lowering/residency/gather_tasks.hpp"
#include "lowering/stages/shards.hpp"

namespace stratagem::lowering {

using program::Block;
using program::Category;
using program::Collective;
using program::Stream;
using program::Task;
using strategies::Keep;

namespace {

/// What a block calls the tensor at a place.
const std::string& name_in(const NumberedBlock& block, int place) {
  return std::ranges::find(block.lowered.block.slots, place, &program::Slot::tensor)->name;
}

/// What a device keeps of a weight on its host, into a slot.
void fetch_values(Task& fetch, int tensor, int slot, const placement::Layout& layout,
                  const std::vector<int>& shards) {
  if (fetch.operations.empty()) fetch.operations = {{.action = program::Action::select}};
  program::Operation& select = fetch.operations.front();
  select.inputs.push_back({.tensor = tensor, .layout = layout, .shards = shards});
  select.outputs.push_back({.tensor = tensor, .slot = slot, .layout = layout, .shards = shards});
}

/// A weight that a block brings to the device.
struct WeightThere {
  const std::string& name;
  int place;  ///< in the segment's table
  const LocalHolding& local;
};

/// Allocates a slot in a task, which writes it.
int allocate(Block& block, Task& task, program::Slot slot) {
  task.allocates.push_back(static_cast<int>(block.slots.size()));
  task.writes.push_back(task.allocates.back());
  block.slots.push_back(std::move(slot));
  return task.allocates.back();
}

program::Slot whole_slot(const WeightThere& weight) {
  return {.name = weight.name,
          .tensor = weight.place,
          .bytes = weight.local.bytes,
          .category = Category::gathered_parameters,
          .layout = weight.local.holding->layout};
}

void fetch_whole(Block& block, int fetch, const WeightThere& weight) {
  Task& task = block.tasks[fetch];
  const int slot = allocate(block, task, whole_slot(weight));
  fetch_values(task, weight.place, slot, weight.local.holding->layout, {});
}

int fetch_shard(Block& block, int fetch, const WeightThere& weight) {
  const auto& [name, place, local] = weight;
  Task& task = block.tasks[fetch];
  const int slot = allocate(block, task, {name, place, local.shard, Category::gathered_parameters});
  fetch_values(task, place, slot, local.holding->layout, local.shards);
  return slot;
}

/// From shards: a slot, or the resident ones (-1).
void gather_whole(Block& block, Task& task, const WeightThere& weight, int shard) {
  const int slot = allocate(block, task, whole_slot(weight));
  program::Operation& gather = task.operations.front();
  gather.inputs.back().tensor = gather.outputs.back().tensor = weight.place;
  gather.inputs.back().slot = shard;
  gather.outputs.back().slot = slot;
}

}  // namespace

Gathers::Gathers(const SequenceContext& context, SequenceDraft& draft, std::vector<SegmentRun> runs)
    : AheadOfRuns(context, draft, only(std::move(runs), &Gathers::needed), ahead_of(context.plan)) {
}

/// Are two runs of one micro-batch, with a weight in common?
bool Gathers::same_buffers(std::size_t one, std::size_t other) const {
  const placement::Cell& a = run(one).of->cell;
  const placement::Cell& b = run(other).of->cell;
  if (a.micro_batch != b.micro_batch || a.slice != b.slice) return false;  // repeats count as one
  const std::vector<model::TensorId>& tensors = context().stages.facts(run(one).segment).tensors;
  const std::map<model::TensorId, int>& places = context().stages.facts(run(other).segment).place;
  return std::ranges::any_of(run(one).block->lowered.gathered, [&](int place) {
    const auto found = places.find(tensors[place]);
    return found != places.end() && run(other).block->lowered.gathered.contains(found->second);
  });
}

bool Gathers::may_issue(std::size_t index) const {
  for (std::size_t before = next(); before < index; ++before) {
    if (same_buffers(before, index)) return false;
  }
  return true;
}

/// The first gathers follow the steps of the iteration before.
Written Gathers::issue(std::size_t index) {
  const SegmentRun& of = run(index);
  const bool first = index == 0;
  const std::string key = "gather " + std::to_string(of.block->id) + (first ? "first" : "");
  const int block = draft().shared(key, [&] { return gather_block(of, first); });
  const int call = draft().add_call(block, of.segment, *of.of);
  const Written last = follow(index, call);
  wait_for_device(call);
  return last;
}

/// Where a gather makes the host wait, it goes on when what it has launched has ended: computations
/// and reductions. Gathers that are under way are on the stream of this one.
void Gathers::wait_for_device(int call) {
  const std::vector<Task>& tasks = draft().tasks_of(call);
  const auto waits = std::ranges::find_if(
      tasks, [](int times) { return times > 0; }, &Task::synchronizations);
  if (waits == tasks.end()) return;
  const auto task = static_cast<int>(waits - tasks.begin());
  if (next() > 0) draft().wait(call, task, draft().last_computation());
  if (const std::optional<Written>& last = draft().last_reduction())
    draft().wait(call, task, *last);
}

void Gathers::connect(std::size_t index, int call) {
  hold_readers(index, call, run(index).block->lowered.gathered);
}

Block Gathers::gather_block(const SegmentRun& run, bool first) const {
  Block block{.name = "gather " + context().plan.graph().segments[run.segment].name,
              .slots = {},
              .tasks = {}};
  const SegmentFacts& facts = context().stages.facts(run.segment);
  const Keep::Where where = context().plan.place_of(Keep::What::parameters);
  const bool fetches = where != Keep::Where::device;
  const bool reads = where == Keep::Where::drives;
  if (reads) block.tasks.push_back(read_task(run, block));
  if (fetches) block.tasks.push_back(fetch_task(run));
  const int fetch = static_cast<int>(block.tasks.size()) - 1;
  if (reads) {
    block.tasks[fetch].waits = {0};
    block.tasks[fetch].frees = block.tasks[0].allocates;
  }
  // Groups of their own: where stages share some devices, each looks ahead in its own order.
  GatherTasks gathers(context().groups, block.name,
                      first ? Stream::compute : Stream::parameter_communication, 1,
                      cost::rule_of<cost::ShardCollectives>(context().stack));
  std::vector<int> shards;
  for (const int place : run.block->lowered.gathered) {
    const LocalHolding& local =
        context().parameters.on(draft().device_class()).at(facts.tensors[place]);
    const WeightThere weight{name_in(*run.block, place), place, local};
    const bool gathered =
        is_gathered(context().plan, context().stack, local.shards) && !local.stays_whole;
    if (!gathered) {
      fetch_whole(block, fetch, weight);
      continue;
    }
    if (fetches) shards.push_back(fetch_shard(block, fetch, weight));
    gather_whole(block, gathers.add(local), weight, fetches ? shards.back() : -1);
  }
  const std::size_t fetched = block.tasks.size();
  gathers.append_to(block);
  for (std::size_t task = fetched; fetches && task < block.tasks.size(); ++task) {
    if (!std::holds_alternative<Collective>(block.tasks[task].work)) continue;
    block.tasks[task].waits = {fetch};
  }
  for (const int shard : shards) {
    block.tasks.back().reads.push_back(shard);
    block.tasks.back().frees.push_back(shard);
  }
  return block;
}

/// What a device keeps of the weights of a run.
Bytes Gathers::kept_of(const SegmentRun& run) const {
  const SegmentFacts& facts = context().stages.facts(run.segment);
  Bytes bytes;
  for (const int place : run.block->lowered.gathered)
    bytes += context().parameters.on(draft().device_class()).at(facts.tensors[place]).shard;
  return bytes;
}

/// Brings that from the drives to the host, into a buffer of the block that its copy from there
/// frees.
Task Gathers::read_task(const SegmentRun& run, Block& block) const {
  Task task{};
  task.name = "read " + context().plan.graph().segments[run.segment].name;
  task.work = Collective{.kind = cost::CollectiveKind::from_drives,
                         .group = context().groups.alone(),
                         .payload = kept_of(run)};
  task.stream = Stream::read_drives;
  task.allocates = {static_cast<int>(block.slots.size())};
  block.slots.push_back({.name = "staging",
                         .tensor = *run.block->lowered.gathered.begin(),
                         .bytes = kept_of(run),
                         .category = Category::staged,
                         .place = program::Residence::host});
  return task;
}

/// The copy of it from the host.
Task Gathers::fetch_task(const SegmentRun& run) const {
  const Collective copy{.kind = cost::CollectiveKind::from_host,
                        .group = context().groups.alone(),
                        .payload = kept_of(run)};
  Task task{};
  task.name = "fetch " + context().plan.graph().segments[run.segment].name;
  task.work = copy;
  task.stream = Stream::copy_in;
  return task;
}

}  // namespace stratagem::lowering

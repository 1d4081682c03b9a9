// Adds one call for every run of a segment that needs weights, and one where they are whole no
// more.
#include "lowering/residency/gathers.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lowering/blocks/lifetimes.hpp"
#include "lowering/residency/copy_task.hpp"
#include "lowering/residency/gather_tasks.hpp"
#include "lowering/stages/shards.hpp"

namespace stratagem::lowering {

using cost::CollectiveKind;
using program::Block;
using program::Category;
using program::Collective;
using program::Operand;
using program::Stream;
using program::Task;
using strategies::Keep;
using From = WeightMove::From;

namespace {

/// What a block calls the tensor at a place.
const std::string& name_in(const NumberedBlock& block, int place) {
  return std::ranges::find(block.lowered.block.slots, place, &program::Slot::tensor)->name;
}

/// Adds to a task that is to select: what a device has in one place, or a part of it, in another.
void select_values(Task& task, int tensor, const LocalHolding& local, Operand from, Operand to) {
  if (task.operations.empty()) task.operations = {{.action = program::Action::select}};
  for (Operand* operand : {&from, &to}) {
    operand->tensor = tensor;
    operand->layout = local.holding->layout;
  }
  task.operations.front().inputs.push_back(std::move(from));
  task.operations.front().outputs.push_back(std::move(to));
}

/// A slot for a weight, or the part of it in which `division` leaves it.
program::Slot slot_for(const std::string& name, int place, const LocalHolding& local,
                       const Division* division) {
  program::Slot slot{
      .name = name,
      .tensor = place,
      .bytes = local.gathered_scale * (division == nullptr ? local.bytes : division->bytes),
      .category = Category::gathered_parameters};
  if (division == nullptr) slot.layout = local.holding->layout;
  return slot;
}

int add_slot(Block& block, program::Slot slot) {
  block.slots.push_back(std::move(slot));
  return static_cast<int>(block.slots.size()) - 1;
}

/// A new buffer, which a task writes.
int allocate(Block& block, Task& task, program::Slot slot) {
  task.allocates.push_back(add_slot(block, std::move(slot)));
  task.writes.push_back(task.allocates.back());
  return task.allocates.back();
}

/// From a part: a slot, or a resident one (-1).
void gather_whole(Block& block, Task& task, const WeightMove& move, const std::string& name,
                  int part) {
  const int slot = allocate(block, task, slot_for(name, move.place, *move.local, nullptr));
  program::Operation& gather = task.operations.front();
  gather.inputs.back().tensor = gather.outputs.back().tensor = move.place;
  gather.inputs.back().slot = part;
  gather.outputs.back().slot = slot;
}

}  // namespace

void append_step_gathers(Block& block, const SequenceContext& context, Stream stream, int purpose,
                         const std::vector<WeightMove>& moves) {
  GatherTasks gathers(context.groups, block.name, stream, purpose,
                      cost::rule_of<cost::StepGathers>(context.stack));
  for (const WeightMove& move : moves) {
    if (move.from != From::step) continue;
    const Division& kept = move.local->parameter;
    Task& task = gathers.add(*move.local, move.local->step, &kept);
    task.reads.push_back(add_slot(block, {context.plan.graph().tensors[move.parameter].name,
                                          move.place, kept.bytes, Category::parameters}));
    task.writes = task.reads;
    program::Operation& gather = task.operations.front();
    gather.inputs.back().tensor = gather.outputs.back().tensor = move.place;
  }
  gathers.append_to(block);
}

Gathers::Gathers(const SequenceContext& context, SequenceDraft& draft,
                 const std::vector<SegmentRun>& runs)
    : Gathers(context, draft, weight_uses(context, draft.device_class(), runs)) {}

Gathers::Gathers(const SequenceContext& context, SequenceDraft& draft, WeightUses uses)
    : AheadOfRuns(context, draft, uses.runs, ahead_of(context.plan)),
      uses_(std::move(uses)),
      kept_(kept_for_passes(context.plan)) {}

bool Gathers::is_next(const SegmentRun& run) const {
  const std::optional<SegmentRun> next = next_run();
  return next && key_of(*next) == key_of(run);
}

void Gathers::before(const SegmentRun& run) {
  if (is_next(run)) before_run();
}

void Gathers::after(const SegmentRun& run, int call) {
  const auto found = uses_.leavings.find(key_of(run));
  if (found != uses_.leavings.end()) leave(run, found->second);
  if (!is_next(run)) return;
  for (const WeightMove& move : uses_.moves[next()])
    if (!kept_) whole_.erase(whole(run, move.place));
  after_run(call);
}

Gathers::Whole Gathers::whole(const SegmentRun& run, int place) const {
  const model::TensorId weight = context().stages.facts(run.segment).tensors[place];
  const placement::Cell& cell = run.of->cell;  // repeats count as one
  return kept_ ? Whole(weight, 0, 0) : Whole(weight, cell.micro_batch, cell.slice);
}

bool Gathers::may_issue(std::size_t index) const {
  return std::ranges::none_of(uses_.moves[index], [&](const WeightMove& move) {
    return move.from != From::step && whole_.contains(whole(run(index), move.place));
  });
}

/// The first gathers follow the steps of the iteration before.
Written Gathers::issue(std::size_t index) {
  const SegmentRun& of = run(index);
  std::string key = "gather " + std::to_string(of.block->id) + (index == 0 ? "first" : "");
  for (const WeightMove& move : uses_.moves[index]) {
    key += " " + std::to_string(static_cast<int>(move.from)) + "/" + std::to_string(move.place);
    if (move.from == From::step) key += " of " + std::to_string(of.segment);
  }
  const int block = draft().shared(key, [&] { return gather_block(index); });
  const int call = draft().add_call(block, of.segment, *of.of);
  const Written last = follow(index, call);
  wait_for_device(call);
  for (const WeightMove& move : uses_.moves[index]) {
    if (move.from != From::step) whole_.insert(whole(of, move.place));
    if (move.from != From::passes) continue;
    for (const int task : draft().first_of_queues(call))
      draft().wait(call, task, parted_.at(move.parameter));
  }
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
  std::set<int> places;
  for (const WeightMove& move : uses_.moves[index]) places.insert(move.place);
  hold_readers(index, call, places);
}

/// A part stays where one waits for the next pass; the rest is freed.
void Gathers::leave(const SegmentRun& run, const std::vector<WeightLeaving>& leavings) {
  std::string key = "reshard " + std::to_string(run.block->id);
  for (const WeightLeaving& one : leavings)
    key += (one.for_good ? " -" : " ") + std::to_string(one.place);
  const int block = draft().shared(key, [&] {
    Block reshard{.name = "reshard " + context().plan.graph().segments[run.segment].name};
    Task task = idle_task(reshard.name);
    auto& kernel = std::get<cost::Kernel>(task.work);
    for (const auto& [place, local, for_good] : leavings) {
      const std::string& name = name_in(*run.block, place);
      const int whole = add_slot(reshard, slot_for(name, place, *local, nullptr));
      task.reads.push_back(whole);
      task.frees.push_back(whole);
      if (for_good) continue;
      const Division& part = local->between_passes;
      const int left = allocate(reshard, task, slot_for(name, place, *local, &part));
      kernel.launches = 1;
      kernel.traffic += 2 * local->gathered_scale * part.bytes;
      select_values(task, place, *local, {.slot = whole}, {.slot = left, .shards = part.axes});
    }
    reshard.tasks.push_back(std::move(task));
    return reshard;
  });
  const int call = draft().add_call(block, run.segment, *run.of);
  for (const WeightLeaving& one : leavings) {
    if (kept_) whole_.erase(whole(run, one.place));
    parted_[context().stages.facts(run.segment).tensors[one.place]] = {call, 0};
  }
}

/// Appends what brings the parts of weights from the host, from its drives through a buffer there;
/// returns the last task, -1 if they are on the device.
int Gathers::append_fetch(Block& block, std::size_t index) const {
  const Keep::Where where = context().plan.place_of(Keep::What::parameters);
  const std::vector<WeightMove>& moves = uses_.moves[index];
  if (where == Keep::Where::device || !std::ranges::count(moves, From::rest, &WeightMove::from))
    return -1;
  Bytes bytes;
  for (const WeightMove& move : moves)
    if (move.from == From::rest) bytes += move.local->parameter.bytes;
  const std::string& segment = context().plan.graph().segments[run(index).segment].name;
  Task fetch = copy_task(context().groups, CollectiveKind::from_host, "fetch " + segment, bytes);
  if (where == Keep::Where::drives) {
    Task read = copy_task(context().groups, CollectiveKind::from_drives, "read " + segment, bytes);
    fetch.waits = {static_cast<int>(block.tasks.size())};
    fetch.frees = read.allocates = {add_slot(block, staging_slot(moves.front().place, bytes))};
    block.tasks.push_back(std::move(read));
  }
  block.tasks.push_back(std::move(fetch));
  return static_cast<int>(block.tasks.size()) - 1;
}

/// The buffer of the part of a weight from which it is gathered; -1: a resident one. Nothing where
/// a copy from the host, task `fetch`, brings the whole of it.
std::optional<int> Gathers::add_part(Block& block, int fetch, const WeightMove& move,
                                     const std::string& name) const {
  const LocalHolding& local = *move.local;
  if (move.from == From::passes)
    return add_slot(block, slot_for(name, move.place, local, &local.between_passes));
  if (fetch < 0) return -1;
  const std::vector<int>& axes = local.parameter.axes;
  const Division* part = axes.empty() ? nullptr : &local.parameter;
  const int slot = allocate(block, block.tasks[fetch], slot_for(name, move.place, local, part));
  select_values(block.tasks[fetch], move.place, local, {.shards = axes},
                {.slot = slot, .shards = axes});
  return axes.empty() ? std::nullopt : std::optional(slot);
}

Block Gathers::gather_block(std::size_t index) const {
  const SegmentRun& of = run(index);
  const std::vector<WeightMove>& moves = uses_.moves[index];
  const bool of_steps = std::ranges::all_of(
      moves, [](From from) { return from == From::step; }, &WeightMove::from);
  Block block{.name = (of_steps ? "gather parameters of " : "gather ") +
                      context().plan.graph().segments[of.segment].name};
  const Stream stream = index == 0 ? Stream::compute : Stream::parameter_communication;
  // Groups of their own: where stages share some devices, each looks ahead in its own order.
  append_step_gathers(block, context(), stream, 1, moves);
  const int fetch = append_fetch(block, index);
  GatherTasks gathers(context().groups, block.name, stream, 1,
                      cost::rule_of<cost::ShardCollectives>(context().stack));
  std::vector<int> parts;
  for (const WeightMove& move : moves) {
    if (move.from == From::step) continue;
    const std::string& name = name_in(*of.block, move.place);
    const std::optional<int> part = add_part(block, fetch, move, name);
    if (!part) continue;
    if (*part >= 0) parts.push_back(*part);
    const bool passes = move.from == From::passes;
    const Division& from = passes ? move.local->between_passes : move.local->parameter;
    gather_whole(block, gathers.add(*move.local, from, nullptr), move, name, *part);
  }
  const std::size_t before = block.tasks.size();
  gathers.append_to(block);
  for (std::size_t task = before; fetch >= 0 && task < block.tasks.size(); ++task) {
    if (std::holds_alternative<Collective>(block.tasks[task].work))
      block.tasks[task].waits = {fetch};
  }
  for (const int part : parts) {
    block.tasks.back().reads.push_back(part);
    block.tasks.back().frees.push_back(part);
  }
  return block;
}

}  // namespace stratagem::lowering

// Turns buckets into calls, and adds the steps after the last of them.
#include "lowering/updates/weight_updates.hpp"

#include <string>
#include <utility>

#include "lowering/blocks/waiting_gradients.hpp"
#include "lowering/residency/copy_task.hpp"
#include "lowering/residency/gathers.hpp"
#include "lowering/residency/shard_collectives.hpp"
#include "lowering/stack/casts.hpp"
#include "lowering/stack/kernels.hpp"
#include "lowering/stages/shards.hpp"
#include "model/cast_products.hpp"

namespace stratagem::lowering {

using cost::CollectiveKind;
using placement::AxisRole;
using program::Action;
using program::Block;
using program::Category;
using program::Collective;
using program::Operand;
using program::Operation;
using program::Stream;
using program::Task;
using strategies::Keep;

WeightUpdates::WeightUpdates(const SequenceContext& context, int device_class, SequenceDraft& draft)
    : c_(context),
      device_class_(device_class),
      draft_(draft),
      cells_(context.order.rounds[device_class]),
      buckets_(gradient_buckets(context.plan, context.stages, *context.slices.front(),
                                context.parameters, context.stack, device_class, cells_)) {
  for (std::size_t i = 0; i < buckets_.along_axes.size(); ++i)
    of_cell_.emplace(buckets_.along_axes[i].cell, i);
  for (const int replica : c_.stages.device_classes()[device_class].replicas) {
    const Replica& s = c_.stages.replicas()[replica];
    const int cell = last_weight_cell(c_.plan, s.stage, s.copy, cells_);
    const auto rank = [&](int index) { return std::pair(cells_[index].lag, index); };
    if (cell >= 0 && (last_cell_ < 0 || rank(last_cell_) < rank(cell))) last_cell_ = cell;
  }
}

void WeightUpdates::reduce_completed(int cell, int segment) {
  const auto [first, last] = of_cell_.equal_range(cell);
  for (auto one = first; one != last; ++one) {
    Bucket& bucket = buckets_.along_axes[one->second];
    // What the cell itself reduces to shards first, it may complete later than this segment.
    const bool ready = bucket.segment == segment && !bucket.of_cells;
    if (ready) reduce(bucket, cells_[cell]);
  }
}

void WeightUpdates::end_cell(int cell) {
  if (!reduces_each_cell(c_.plan)) return;
  const auto [first, last] = of_cell_.equal_range(cell);
  for (auto one = first; one != last; ++one) reduce(buckets_.along_axes[one->second], cells_[cell]);
}

void WeightUpdates::begin() {
  if (!c_.plan.steps.delayed || last_cell_ < 0) return;
  add_steps(cells_[last_cell_]);
  if (staging_) staging_->finish();
}

void WeightUpdates::finish() {
  const ScheduledCell& last = cells_[last_cell_];
  for (Bucket& bucket : buckets_.along_axes) reduce(bucket, last);
  for (Bucket& bucket : buckets_.across_grids) reduce(bucket, last);
  c_.plan.steps.delayed ? copy_stepped(last) : add_steps(last);
  gather_parameters(last);
  cast_parameters(last);
  if (staging_) staging_->finish();
}

/// What sums up a bucket: to shards where there are any along the axes of the sums, then what is
/// left over the other axes.
std::vector<Collective> WeightUpdates::collectives(const Bucket& bucket) const {
  if (!bucket.ranks.empty())
    return {{.group = c_.groups.of({bucket.ranks}, -2), .payload = bucket.bytes}};
  if (!bucket.grids.empty())
    return {{.group = c_.groups.across(bucket.grids, -1), .payload = bucket.shard}};
  std::vector<Collective> result;
  if (const std::vector<int> axes = bucket.scattered(); !axes.empty()) {
    result.push_back({.kind = CollectiveKind::reduce_scatter,
                      .group = c_.groups.along(bucket.grid, axes),
                      .payload = bucket.bytes});
  }
  if (const std::vector<int> axes = bucket.others(); !axes.empty())
    result.push_back({.group = c_.groups.along(bucket.grid, axes), .payload = bucket.shard});
  return result;
}

/// What is left to reduce of a bucket. Whole gradients of which shards are kept are freed by that;
/// on the way to the host nothing is kept.
void WeightUpdates::reduce(Bucket& bucket, const ScheduledCell& of) {
  if (std::exchange(bucket.reduced, true)) return;
  const Written after = draft_.last_computation();
  const std::vector<Collective> works = collectives(bucket);
  std::string key = "reduce";
  for (const Collective& work : works) key += " " + std::to_string(work.group);
  for (const BucketGradient& gradient : bucket.gradients)
    key += "," + std::to_string(gradient.tensor);
  const bool on_drives = c_.plan.place_of(Keep::What::gradients) == Keep::Where::drives;
  const auto there = on_drives_.find(bucket.gradients.front().tensor);
  const bool adds = there != on_drives_.end();
  if (adds) key += " again";
  const int block = draft_.shared(key, [&] {
    Block reduction = reduction_block(bucket, works);
    if (on_drives) stage_on_drives(reduction, bucket, adds);
    return reduction;
  });
  const int call = draft_.add_call(block, -1, of);
  const auto last = static_cast<int>(draft_.tasks_of(call).size()) - 1;
  before_last_ = std::exchange(last_out_, Written{call, on_drives ? last - 1 : last});
  if (on_drives && written_.size() >= 2)
    draft_.wait(call, adds ? 0 : last - 1, written_[written_.size() - 2]);
  if (adds) draft_.wait(call, 0, there->second);
  if (on_drives) written_.push_back(on_drives_[bucket.gradients.front().tensor] = {call, last});
  draft_.note_reduction({call, last});
  draft_.wait(call, adds ? 1 : 0, after);
}

/// Gradients that wait on drives come from there, behind what is there of them (unless they are the
/// first of an iteration), through a buffer on the host in which the last task of a block adds to
/// them, and go back.
void WeightUpdates::stage_on_drives(Block& block, const Bucket& bucket, bool adds) const {
  const auto buffer = static_cast<int>(block.slots.size());
  block.slots.push_back(staging_slot(bucket.gradients.front().tensor, bucket.shard));
  Task read = copy_task(c_.groups, CollectiveKind::from_drives, "read gradients", bucket.shard);
  Task write = copy_task(c_.groups, CollectiveKind::to_drives, "write gradients", bucket.shard);
  Task& out = block.tasks.back();
  (adds ? read : out).allocates.push_back(buffer);
  write.frees = {buffer};
  if (adds) {
    for (Task& task : block.tasks)
      for (int& wait : task.waits) ++wait;
    out.waits.push_back(0);
    block.tasks.insert(block.tasks.begin(), std::move(read));
  }
  write.waits = {static_cast<int>(block.tasks.size()) - 1};
  block.tasks.push_back(std::move(write));
}

std::optional<Written> WeightUpdates::room_for_gradients() const {
  if (!reduces_each_cell(c_.plan)) return std::nullopt;
  return before_last_;
}

std::vector<int> WeightUpdates::add_slots(Block& block, const Bucket& bucket,
                                          Bytes BucketGradient::*size, Category category) const {
  std::vector<int> slots;
  for (const BucketGradient& gradient : bucket.gradients) {
    slots.push_back(static_cast<int>(block.slots.size()));
    block.slots.push_back({c_.plan.graph().tensors[gradient.tensor].name, gradient.tensor,
                           own_bytes(c_.plan, category, gradient.*size), category});
  }
  return slots;
}

/// Slots of a bucket's gradients before and after their sum. Whole gradients are freed where shards
/// take their place; in the same buffers they leave for the host, or stay where they live always.
WeightUpdates::SlotsOfSum WeightUpdates::add_slots_of_sum(Block& block, const Bucket& bucket,
                                                          bool to_shards) const {
  const bool to_host = c_.plan.steps.on_host;
  SlotsOfSum slots;
  if (to_shards || to_host)
    slots.from = add_slots(block, bucket, &BucketGradient::held, Category::whole_gradients);
  if (!to_shards && to_host) {
    slots.to = slots.from;
  } else {
    const bool whole = !to_shards && !bucket.scattered().empty();
    slots.to = add_slots(block, bucket, whole ? &BucketGradient::held : &BucketGradient::shard,
                         to_host ? Category::whole_gradients : Category::gradients);
  }
  return slots;
}

Block WeightUpdates::reduction_block(const Bucket& bucket,
                                     const std::vector<Collective>& works) const {
  Block block{.name = "reduce gradients", .slots = {}, .tasks = {}};
  const bool to_host = c_.plan.steps.on_host;
  const bool to_shards = bucket.to_shards && !bucket.shards.empty();
  const auto [before, after] = add_slots_of_sum(block, bucket, to_shards);
  for (const Collective& work : works) {
    const bool first = block.tasks.empty();
    if (to_shards && first) {
      append_scatters(block, bucket, work, {before, after});
      continue;
    }
    Task task{};
    task.name = first ? block.name : "sum up shards";
    task.work = work;
    task.stream = Stream::gradient_communication;
    task.reads = task.writes = after;
    const SlotsOfSum slots = to_host ? SlotsOfSum{after, after} : SlotsOfSum{};
    task.operations = {bucket.ranks.empty() ? sum(bucket, !first, slots) : sum_of_parts(bucket)};
    block.tasks.push_back(std::move(task));
  }
  if (to_shards && works.empty()) {
    block.tasks.push_back(select_shards(bucket.shard, before, after));
    Operation select = sum(bucket, false, {before, to_host ? after : std::vector<int>{}});
    select.action = Action::select;
    select.adds = !to_host;
    block.tasks.back().operations = {std::move(select)};
  }
  if (to_host) {
    block.tasks.push_back(copy_out(after, bucket.shard, block.tasks.size()));
    block.tasks.back().operations = {add_on_host(bucket, works.empty() && !to_shards, after)};
  }
  return block;
}

/// The first collective of a bucket of which shards are kept: for all of it, or for each gradient
/// where the framework has it so.
void WeightUpdates::append_scatters(Block& block, const Bucket& bucket, const Collective& work,
                                    const SlotsOfSum& slots) const {
  const bool to_host = c_.plan.steps.on_host;
  const bool parameters = !c_.plan.divided(Keep::What::parameters).empty();
  const cost::ShardCollectives facts =
      parameters ? cost::rule_of<cost::ShardCollectives>(c_.stack) : cost::ShardCollectives{};
  const auto append = [&](const Bucket& scattered, const SlotsOfSum& its) {
    Task task{};
    task.name = block.name;
    if (facts.by_weight) task.name += ": " + block.slots[its.from.front()].name;
    task.work = work;
    std::get<Collective>(task.work).payload = scattered.bytes;
    task.stream = Stream::gradient_communication;
    task.reads = task.frees = its.from;
    task.writes = its.to;
    if (to_host) task.allocates = its.to;
    task.operations = {sum(scattered, false, {its.from, to_host ? its.to : std::vector<int>{}})};
    task.operations.front().adds = !to_host;
    append_scatter(block, std::move(task), ranks_along(bucket.grid, bucket.scattered()), facts);
    if (!to_host)
      append_accumulation(block, scattered.shard, kernels_of(c_.stack, "gradient_accumulation"));
  };
  if (!facts.by_weight) return append(bucket, slots);
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i)
    append(bucket.only(i), {{slots.from[i]}, {slots.to[i]}});
}

/// What the first or the second collective does to the gradients of a bucket: the first one of two
/// leaves shards, the other one completes what is left over the other axes.
Operation WeightUpdates::sum(const Bucket& bucket, bool second, const SlotsOfSum& slots) const {
  const std::vector<int> scattered = bucket.scattered();
  const bool to_shards =
      !second && (bucket.to_shards ? !bucket.shards.empty() : !scattered.empty());
  Operation result{.action = Action::convert};
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
    Operand operand{.tensor = bucket.gradients[i].tensor,
                    .layout = bucket.gradients[i].layout,
                    .shards = second ? bucket.shards : bucket.held};
    for (const int axis : second ? scattered : std::vector<int>{})
      operand.layout[axis] = {AxisRole::replica};
    result.inputs.push_back(operand);
    if (!slots.from.empty()) result.inputs.back().slot = slots.from[i];
    for (const int axis : to_shards ? scattered : bucket.others())
      operand.layout[axis] = {AxisRole::replica};
    if (to_shards) operand.shards = bucket.shards;
    result.outputs.push_back(operand);
    if (!slots.to.empty()) result.outputs.back().slot = slots.to[i];
  }
  return result;
}

/// The same of gradients of which all of some devices have equal parts: each has added up terms of
/// its own.
Operation WeightUpdates::sum_of_parts(const Bucket& bucket) {
  Operation result{.action = Action::convert};
  for (const BucketGradient& gradient : bucket.gradients) {
    const std::vector<placement::Mask> of_all(bucket.ranks.size(), *gradient.mask);
    result.inputs.push_back({.tensor = gradient.tensor, .masks = of_all});
  }
  result.outputs = result.inputs;
  return result;
}

/// Adds reduced gradients, or those that need no reduction, to what waits on the host.
Operation WeightUpdates::add_on_host(const Bucket& bucket, bool unreduced,
                                     const std::vector<int>& slots) const {
  Operation result{.action = Action::select, .adds = true};
  for (std::size_t i = 0; i < bucket.gradients.size(); ++i) {
    Operand operand{.tensor = bucket.gradients[i].tensor, .layout = bucket.gradients[i].layout};
    for (const int axis : bucket.axes) operand.layout[axis] = {AxisRole::replica};
    if (!unreduced) operand.shards = bucket.shards;
    result.outputs.push_back(operand);
    operand.slot = slots[i];
    result.inputs.push_back(std::move(operand));
  }
  return result;
}

/// Where all ranks have the same gradients each copies its shards.
Task WeightUpdates::select_shards(Bytes bytes, const std::vector<int>& whole,
                                  const std::vector<int>& shards) const {
  cost::Kernel kernel;
  kernel.kind = cost::KernelKind::elementwise;
  kernel.traffic = 2 * bytes;
  Task task{};
  task.name = "select shards";
  task.work = kernel;
  task.reads = task.frees = whole;
  task.writes = shards;
  if (c_.plan.steps.on_host) task.allocates = shards;
  return task;
}

/// The copy of reduced gradients to the host, behind so many tasks of its block.
Task WeightUpdates::copy_out(std::vector<int> gradients, Bytes bytes, std::size_t tasks) const {
  Task task = copy_task(c_.groups, CollectiveKind::to_host, "gradients to host", bytes);
  if (tasks > 0) task.waits = {static_cast<int>(tasks) - 1};
  task.reads = gradients;
  task.frees = std::move(gradients);
  return task;
}

/// Of steps on the host each segment's weights come back at once; those of the last one on the
/// stream of computations, which need all of them next.
void WeightUpdates::append_return(StepBlock& step, bool last) const {
  std::vector<Task>& tasks = step.block.tasks;
  Operation back{.action = Action::select};
  for (const Task& task : tasks) {
    for (const Operand& parameter : task.operations.front().outputs)
      back.inputs.push_back(parameter);
  }
  back.outputs = back.inputs;
  tasks.push_back(copy_in(step.bytes, step.block.slots.size(), last));
  tasks.back().waits = {static_cast<int>(tasks.size()) - 2};
  tasks.back().operations = {std::move(back)};
  step.key += last ? "host end" : "host";
}

/// The first step waits for the last reduction. Weights that live on the host are fetched when they
/// are needed. Delayed steps use the gradients of the iteration before: they wait for nothing, hold
/// up nothing, and their weights come back later.
void WeightUpdates::add_steps(const ScheduledCell& last) {
  std::vector<StepBlock> steps = step_blocks(c_, device_class_);
  staging_.emplace(c_, draft_, steps, last, draft_.last_reduction().value_or(Written{}));
  const bool delayed = c_.plan.steps.delayed;
  const bool returns = c_.plan.steps.on_host &&
                       c_.plan.place_of(Keep::What::parameters) == Keep::Where::device && !delayed;
  Written before;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    StepBlock& step = steps[i];
    const bool ends = i + 1 == steps.size();
    stepped_ += step.bytes;
    if (returns) append_return(step, ends);
    for (std::size_t task = 0; delayed && task < step.parameters.size(); ++task) {
      Task& late = step.block.tasks[task];
      late.synchronizations = 0;  // a thread of its own
      Operand& weight = stepped_weights_.emplace_back(late.operations.front().outputs.front());
      weight.tensor = step.parameters[task];
    }
    staging_->before_step(step);
    const int block = draft_.shared(step.key, [&] { return std::move(step.block); });
    const int call = draft_.add_call(block, step.segment, last);
    for (std::size_t task = 0; task < step.parameters.size(); ++task)
      draft_.note_step(step.parameters[task], {call, static_cast<int>(task)});
    if (i == 0 && draft_.last_reduction()) draft_.wait(call, 0, *draft_.last_reduction());
    staging_->after_run(call);
    last_step_ = {call, static_cast<int>(draft_.tasks_of(call).size()) - 1};
    if (returns && ends && before.call >= 0) draft_.wait(call, last_step_.task, before);
    before = last_step_;
  }
}

/// The weights that the delayed steps made take the place of those of the iteration that has ended.
/// The thread that launches the next one waits for that, and for the gradients that left before.
void WeightUpdates::copy_stepped(const ScheduledCell& last) {
  if (last_step_.call < 0) return;
  Block block{.name = "exchange with host", .slots = {}, .tasks = {copy_in(stepped_, 0, true)}};
  block.tasks.front().synchronizations = 1;
  block.tasks.front().operations = {
      {.action = Action::select, .inputs = stepped_weights_, .outputs = stepped_weights_}};
  const int call = draft_.add_call(c_.table.add(std::move(block)), -1, last);
  draft_.wait(call, 0, last_step_);
  if (staging_ && staging_->last_write().call >= 0) draft_.wait(call, 0, staging_->last_write());
  if (draft_.last_reduction()) draft_.wait(call, 0, *draft_.last_reduction());
}

/// The copy of new weights to the device, into the first slots of its block.
Task WeightUpdates::copy_in(Bytes bytes, std::size_t slots, bool ends) const {
  Task task = copy_task(c_.groups, CollectiveKind::from_host, "parameters from host", bytes);
  if (ends) task.stream = Stream::compute;
  for (std::size_t slot = 0; slot < slots; ++slot) task.writes.push_back(static_cast<int>(slot));
  return task;
}

/// Where every rank steps for a shard of weights that are there whole, it tells the others; they
/// compute with them next, and wait.
void WeightUpdates::gather_parameters(const ScheduledCell& last) {
  if (gathers_before_first_use(c_.plan)) return;
  std::vector<WeightMove> all;
  for (const auto& [parameter, local] : c_.parameters.on(device_class_)) {
    const bool trained = c_.plan.graph().gradient_of[parameter] >= 0;
    if (trained && local.steps_in_parts())
      all.push_back({WeightMove::From::step, parameter, parameter, &local});
  }
  Block block{.name = "gather parameters"};
  append_step_gathers(block, c_, Stream::compute, 0, all);
  if (!block.tasks.empty()) draft_.add_call(c_.table.add(std::move(block)), -1, last);
}

/// Where linear layers multiply in another type, what a rank keeps of their weights is cast once an
/// iteration.
void WeightUpdates::cast_parameters(const ScheduledCell& last) {
  const model::Graph& graph = c_.plan.graph();
  const cost::Precision& precision = c_.training.precision;
  Block block{.name = "cast parameters", .slots = {}, .tasks = {}};
  for (const auto& [parameter, type] : model::cast_parameters(graph)) {
    const auto held = c_.parameters.on(device_class_).find(parameter);
    if (held == c_.parameters.on(device_class_).end() || graph.gradient_of[parameter] < 0) continue;
    const Bytes bytes = held->second.parameter.bytes;
    const auto slot = static_cast<int>(block.slots.size());
    block.slots.push_back({graph.tensors[parameter].name, parameter, bytes, Category::parameters});
    Task task{};
    task.name = graph.tensors[parameter].name + " to " + model::to_text(type);
    task.reads = {slot};
    task.work = cast_kernel(bytes, graph.tensors[parameter].type, precision);
    block.tasks.push_back(std::move(task));
  }
  if (!block.tasks.empty()) draft_.add_call(c_.table.add(std::move(block)), -1, last);
}

}  // namespace stratagem::lowering

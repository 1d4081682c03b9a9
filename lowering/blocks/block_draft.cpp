// Keeps what a device holds in step with its tasks.
#include "lowering/blocks/block_draft.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/blocks/lifetimes.hpp"
#include "lowering/blocks/pieces.hpp"

namespace stratagem::lowering {

using model::TensorId;
using placement::Part;
using program::Category;
using program::Operand;
using program::Stream;
using program::Task;

namespace {

std::vector<placement::Mask> masks_of(const Part& part) {
  if (!part.mask) return {};
  return {*part.mask};
}

}  // namespace

SlotName name_of(const model::Graph& graph, const SegmentFacts& facts, TensorId tensor) {
  const std::string& name = graph.tensors[tensor].name;
  const std::string prefix = graph.segments[facts.segment].name + ".";
  return {tensor, facts.place.at(tensor),
          name.starts_with(prefix) ? name.substr(prefix.size()) : name};
}

Operand operand(int tensor, int slot, const Part& part) {
  return {.tensor = tensor, .slot = slot, .layout = part.layout, .masks = masks_of(part)};
}

BlockDraft::BlockDraft(const model::Graph& graph, const placement::Grid& grid, std::string name)
    : graph_(graph), grid_(grid) {
  lowered_.block.name = std::move(name);
}

int BlockDraft::add_slot(const SlotName& tensor, const Part& part, Category category) {
  lowered_.block.slots.push_back({.name = tensor.name,
                                  .tensor = tensor.tensor,
                                  .bytes = bytes_of(graph_.tensors[tensor.id], part, grid_),
                                  .category = category,
                                  .layout = part.layout,
                                  .masks = masks_of(part)});
  return static_cast<int>(lowered_.block.slots.size()) - 1;
}

/// Equal masks of partial values may be of other values: the new one replaces the old.
void BlockDraft::hold(TensorId tensor, const Part& part, int slot) {
  if (part.mask && is_partial(part))
    std::erase_if(held_[tensor], [&](const Held& held) { return held.part == part; });
  held_[tensor].push_back({part, slot});
}

int BlockDraft::import(const SlotName& tensor, const Part& part, Category category) {
  const int slot = add_slot(tensor, part, category);
  hold(tensor.id, part, slot);
  external_.insert(slot);
  return slot;
}

bool BlockDraft::holds(TensorId tensor, const Part& part) const {
  const auto found = held_.find(tensor);
  return found != held_.end() &&
         std::ranges::find(found->second, part, &Held::part) != found->second.end();
}

int BlockDraft::slot_of(TensorId tensor, const Part& part) const {
  expects(holds(tensor, part), "a device reads what it holds");
  return std::ranges::find(held_.at(tensor), part, &Held::part)->slot;
}

int BlockDraft::last_slot_of(TensorId tensor, const Part& part) const {
  expects(holds(tensor, part), "a device leaves what it holds");
  const std::vector<Held>& held = held_.at(tensor);
  return std::ranges::find(held.rbegin(), held.rend(), part, &Held::part)->slot;
}

bool BlockDraft::is_view(TensorId tensor, const Part& part) const {
  return bytes_of(graph_.tensors[tensor], part, grid_) < slot(last_slot_of(tensor, part)).bytes;
}

void BlockDraft::view(TensorId tensor, const Part& of, const Part& part) {
  const int slot = slot_of(tensor, of);
  if (is_partial(part) || !holds(tensor, part)) hold(tensor, part, slot);
}

int BlockDraft::ready(int slot) const {
  const auto found = ready_.find(slot);
  return found == ready_.end() ? -1 : found->second;
}

void BlockDraft::wait_for(Task& task, int slot) const {
  const int earlier = ready(slot);
  if (earlier >= 0 && lowered_.block.tasks[earlier].stream != task.stream)
    task.waits.push_back(earlier);
}

Operand BlockDraft::read(Task& task, TensorId tensor, const Part& part) {
  const int slot = slot_of(tensor, part);
  task.reads.push_back(slot);
  wait_for(task, slot);
  if (external_.contains(slot)) note_reader(task, lowered_.block.slots[slot].tensor);
  return operand(lowered_.block.slots[slot].tensor, slot, part);
}

Operand BlockDraft::write(Task& task, const SlotName& tensor, const Part& part, Category category) {
  const int slot = add_slot(tensor, part, category);
  hold(tensor.id, part, slot);
  task.writes.push_back(slot);
  ready_[slot] = lowered_.last_writer[tensor.tensor] = next();
  return operand(tensor.tensor, slot, part);
}

void BlockDraft::wait_for_senders(Task& task, int slot) const {
  for (int t = next() - 1; t > ready(slot); --t) {
    const Task& sender = lowered_.block.tasks[t];
    const bool elsewhere = sender.stream != Stream::compute && sender.stream != task.stream;
    if (elsewhere && is_in(sender.reads, slot)) task.waits.push_back(t);
  }
}

Operand BlockDraft::overwrite(Task& task, TensorId tensor, const Part& from, const Part& to) {
  const int slot = slot_of(tensor, from);
  wait_for_senders(task, slot);
  std::erase_if(held_[tensor], [&](const Held& held) { return held.slot == slot; });
  hold(tensor, to, slot);
  task.writes.push_back(slot);
  ready_[slot] = lowered_.last_writer[lowered_.block.slots[slot].tensor] = next();
  return operand(lowered_.block.slots[slot].tensor, slot, to);
}

int BlockDraft::push(Task task) {
  std::ranges::sort(task.waits);
  task.waits.erase(std::unique(task.waits.begin(), task.waits.end()), task.waits.end());
  lowered_.block.tasks.push_back(std::move(task));
  part_of_.push_back(running_);
  return next() - 1;
}

int BlockDraft::last_computation(int count) const {
  while (count > 0 && lowered_.block.tasks[count - 1].stream != Stream::compute) --count;
  return count - 1;
}

model::OpId BlockDraft::writer_of(int slot) const {
  return ready(slot) < 0 ? -1 : part_of_[ready(slot)];
}

void BlockDraft::follow_computation(Task& task, int slot, model::OpId of,
                                    std::optional<model::Pass> beside) const {
  if (task.stream == Stream::compute) return;
  const auto runs_beside = [&](model::OpId id) {
    if (id < 0 || graph_.operators[id].forward < 0) return false;
    return graph_.operators[id].pass == *beside &&
           graph_.operators[id].forward == graph_.operators[of].forward;
  };
  int last = last_computation(next());
  while (beside && of >= 0 && last > ready(slot) && runs_beside(part_of_[last]))
    last = last_computation(last);
  if (last < 0) return;
  // What was computed before the last computation has ended with it.
  std::erase_if(task.waits,
                [&](int wait) { return lowered_.block.tasks[wait].stream == Stream::compute; });
  task.waits.push_back(last);
}

void BlockDraft::hold_transfers(TensorId tensor, const Part& part) {
  const int slot = slot_of(tensor, part);
  if (!external_.contains(slot) || ready_.contains(slot)) return;
  const auto readers = lowered_.first_readers.find(lowered_.block.slots[slot].tensor);
  if (readers != lowered_.first_readers.end() && readers->second.contains(Stream::compute)) {
    ready_[slot] = readers->second.at(Stream::compute);
    return;
  }
  Task task = idle_task(lowered_.block.slots[slot].name + " is there");
  ready_[slot] = next();
  task.reads = {slot};
  note_reader(task, lowered_.block.slots[slot].tensor);
  push(std::move(task));
}

void BlockDraft::keep(int slot, Category category) {
  lowered_.block.slots[slot].category = category;
  survivors_.insert(slot);
}

/// What nobody uses is freed by the last task; a transfer could end before it is there.
void BlockDraft::free_unused() {
  if (!lowered_.block.tasks.empty() && !transfers(lowered_.block.tasks.back().stream)) return;
  const std::map<int, std::vector<int>> uses = uses_by_slot(lowered_.block);
  Task last = idle_task("");
  for (const int slot : external_) {
    if (!survivors_.contains(slot) && !uses.contains(slot)) last.reads.push_back(slot);
  }
  if (last.reads.empty()) return;
  last.name = lowered_.block.slots[last.reads.front()].name + " free";
  push(std::move(last));
}

bool BlockDraft::multiplies_rows(TensorId tensor, int dimension) const {
  if (running_ < 0) return false;
  const model::Operator& op = graph_.operators[running_];
  if (op.kind != model::OpKind::contraction || op.inputs[0] != tensor) return false;
  const std::string& name = op.annotation->inputs[0][dimension].identifiers.front();
  return model::dimension_of(op.annotation->outputs[0], name) >= 0 &&
         model::dimension_of(op.annotation->inputs[1], name) < 0;
}

void BlockDraft::pass_in_ring(model::OpId of, int ranks, cost::CollectiveKind kind) {
  Ring& ring = rings_[ring_of(of)];
  ring.ranks = ranks;
  (kind == cost::CollectiveKind::all_gather ? ring.gathers : ring.scatters).push_back(next());
}

std::pair<model::OpId, model::Pass> BlockDraft::ring_of(model::OpId op) const {
  return {forward_of(graph_, op), graph_.operators[op].pass};
}

bool BlockDraft::is_attention(int task) const {
  const auto* kernel = std::get_if<cost::Kernel>(&lowered_.block.tasks[task].work);
  return kernel != nullptr && cost::is_attention(kernel->kind) && part_of_[task] >= 0;
}

bool BlockDraft::reads_what_passes(model::OpId attention) const {
  const auto ring = rings_.find(ring_of(attention));
  if (ring == rings_.end() || ring->second.gathers.size() != 2) return false;
  int kernel = next() - 1;
  while (!is_attention(kernel) || part_of_[kernel] != attention) --kernel;
  const std::vector<Task>& tasks = lowered_.block.tasks;
  return std::ranges::all_of(ring->second.gathers, [&](int gather) {
    return is_in(tasks[kernel].reads, tasks[gather].writes.front());
  });
}

/// All rings, with their kernels.
std::vector<Ring> BlockDraft::rings() const {
  std::vector<Ring> result;
  for (const auto& [of, noted] : rings_) {
    Ring& ring = result.emplace_back(noted);
    for (int task = 0; task < next(); ++task)
      if (is_attention(task) && ring_of(part_of_[task]) == of) ring.kernels.push_back(task);
  }
  return result;
}

/// A weight's gradient is a sum over tokens: it has no pieces of them.
void BlockDraft::cut_products() {
  if (cuts_.empty()) return;
  const auto by_tokens = [&](int task) {
    const model::OpId op = part_of_[task];
    return op >= 0 && graph_.operators[op].pass != model::Pass::weight_gradient;
  };
  follow(cut_in_pieces(lowered_.block, cuts_, by_tokens));
}

void BlockDraft::write_rings() {
  if (rings_.empty()) return;
  follow(run_in_rings(lowered_.block, rings()));
}

/// Finds again what was noted of tasks by their places.
void BlockDraft::follow(const Moved& moved) {
  for (auto& [tensor, readers] : lowered_.first_readers) {
    for (auto& [stream, task] : readers) task = moved.first[task];
  }
  for (auto* firsts : {&lowered_.first_addition, &lowered_.parts})
    for (auto& [tensor, task] : *firsts) task = moved.first[task];
  for (auto& [tensor, task] : lowered_.last_writer) task = moved.last[task];
  for (const auto& [task, slot] : moved.own_shares) {
    if (!external_.contains(slot)) continue;
    int& first = lowered_.first_readers[lowered_.block.slots[slot].tensor]
                     .try_emplace(Stream::compute, task)
                     .first->second;
    first = std::min(first, task);
  }
  // What was cut is cut once.
  std::vector<model::OpId> part_of(lowered_.block.tasks.size(), -1);
  std::map<int, Cut> cuts;
  for (std::size_t task = 0; task < part_of_.size(); ++task) {
    if (moved.first[task] != moved.last[task]) continue;
    part_of[moved.first[task]] = part_of_[task];
    if (const auto cut = cuts_.find(static_cast<int>(task)); cut != cuts_.end())
      cuts.emplace(moved.first[task], cut->second);
  }
  part_of_ = std::move(part_of);
  cuts_ = std::move(cuts);
}

LoweredBlock BlockDraft::finish() {
  write_rings();
  cut_products();
  for (const int apart : apart_) {
    if (!survivors_.contains(apart)) slot(apart).bytes = {};
  }
  join_streams(lowered_.block, survivors_, handed_on_);
  free_unused();
  set_lifetimes(lowered_.block, external_, survivors_);
  return std::move(lowered_);
}

}  // namespace stratagem::lowering

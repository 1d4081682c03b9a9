// Keeps what a device holds in step with its tasks.
#include "lowering/blocks/device_block.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/blocks/last_uses.hpp"
#include "lowering/blocks/lifetimes.hpp"
#include "placement/local_part.hpp"

namespace stratagem::lowering {

using model::TensorId;
using placement::Mask;
using program::Category;
using program::Operand;
using program::Stream;
using program::Task;

DeviceBlock::DeviceBlock(const model::Graph& graph, std::string name) : graph_(graph) {
  block_.name = std::move(name);
}

int DeviceBlock::new_slot(const SlotName& tensor, const Mask& mask, Category category) {
  block_.slots.push_back({.name = tensor.name,
                          .tensor = tensor.tensor,
                          .bytes = bytes_of(graph_.tensors[tensor.id], mask),
                          .category = category,
                          .masks = {mask}});
  return slots_[tensor.id][mask] = static_cast<int>(block_.slots.size()) - 1;
}

int DeviceBlock::import(const SlotName& tensor, const Mask& mask, Category category) {
  const int slot = new_slot(tensor, mask, category);
  external_.insert(slot);
  return slot;
}

bool DeviceBlock::holds(TensorId tensor, const Mask& mask) const {
  const auto found = slots_.find(tensor);
  return found != slots_.end() && found->second.contains(mask);
}

int DeviceBlock::slot_of(TensorId tensor, const Mask& mask) const {
  expects(holds(tensor, mask), "a device reads what it holds");
  return slots_.at(tensor).at(mask);
}

bool DeviceBlock::is_view(TensorId tensor, const Mask& mask) const {
  return bytes_of(graph_.tensors[tensor], mask) < slot(slot_of(tensor, mask)).bytes;
}

void DeviceBlock::view(TensorId tensor, const Mask& of, const Mask& part) {
  const int slot = slot_of(tensor, of);
  const bool equal = part.value.count == 1;  // partial values of equal names may be others
  if (!equal || !holds(tensor, part)) slots_[tensor][part] = slot;
}

void DeviceBlock::wait_for(Task& task, int slot) const {
  const auto ready = ready_.find(slot);
  if (ready != ready_.end() && block_.tasks[ready->second].stream != task.stream)
    task.waits.push_back(ready->second);
}

Operand DeviceBlock::read(Task& task, TensorId tensor, const Mask& mask) {
  const int slot = slot_of(tensor, mask);
  task.reads.push_back(slot);
  wait_for(task, slot);
  if (external_.contains(slot))
    first_readers_[block_.slots[slot].tensor].emplace(task.stream, next());
  return {.tensor = block_.slots[slot].tensor, .slot = slot, .masks = {mask}};
}

Operand DeviceBlock::write(Task& task, const SlotName& tensor, const Mask& mask,
                           Category category) {
  const int slot = new_slot(tensor, mask, category);
  task.writes.push_back(slot);
  ready_[slot] = last_writer_[tensor.tensor] = next();
  return {.tensor = tensor.tensor, .slot = slot, .masks = {mask}};
}

void DeviceBlock::scratch(Task& task, const SlotName& tensor, Bytes bytes) {
  task.writes.push_back(static_cast<int>(block_.slots.size()));
  block_.slots.push_back({tensor.name, tensor.tensor, bytes, Category::temporaries});
}

Operand DeviceBlock::overwrite(Task& task, TensorId tensor, const Mask& from, const Mask& to) {
  const int slot = slot_of(tensor, from);
  std::erase_if(slots_[tensor], [&](const auto& part) { return part.second == slot; });
  slots_[tensor][to] = slot;
  task.writes.push_back(slot);
  ready_[slot] = last_writer_[block_.slots[slot].tensor] = next();
  return {.tensor = block_.slots[slot].tensor, .slot = slot, .masks = {to}};
}

void DeviceBlock::push(Task task) {
  std::ranges::sort(task.waits);
  task.waits.erase(std::unique(task.waits.begin(), task.waits.end()), task.waits.end());
  block_.tasks.push_back(std::move(task));
}

void DeviceBlock::follow_computation(Task& task) const {
  const auto last =
      std::ranges::find(block_.tasks.rbegin(), block_.tasks.rend(), Stream::compute, &Task::stream);
  const auto index = static_cast<int>(block_.tasks.rend() - last) - 1;
  if (index >= 0 && task.stream != Stream::compute) task.waits.push_back(index);
}

void DeviceBlock::hold_transfers(TensorId tensor, const Mask& mask) {
  const int slot = slot_of(tensor, mask);
  if (!external_.contains(slot) || ready_.contains(slot)) return;
  const auto readers = first_readers_.find(block_.slots[slot].tensor);
  if (readers != first_readers_.end() && readers->second.contains(Stream::compute)) {
    ready_[slot] = readers->second.at(Stream::compute);
    return;
  }
  Task task = idle_task(block_.slots[slot].name + " is there");
  ready_[slot] = next();
  task.reads = {slot};
  first_readers_[block_.slots[slot].tensor].emplace(Stream::compute, next());
  push(std::move(task));
}

void DeviceBlock::keep(int slot, Category category) {
  block_.slots[slot].category = category;
  survivors_.insert(slot);
}

program::Block DeviceBlock::finish() {
  join_streams(block_, survivors_);
  const std::set<int> used = used_slots(block_);
  Task last = idle_task("");
  for (const int slot : external_) {
    if (!survivors_.contains(slot) && !used.contains(slot)) last.reads.push_back(slot);
  }
  if (!last.reads.empty()) {
    last.name = block_.slots[last.reads.front()].name + " free";
    push(std::move(last));
  }
  set_lifetimes(block_, external_, survivors_);
  return std::move(block_);
}

}  // namespace stratagem::lowering

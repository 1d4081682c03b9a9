// The block of a single device under construction: which slots have which parts of its tensors.
#pragma once

#include <map>
#include <set>
#include <string>

#include "lowering/stages/segment.hpp"
#include "placement/mask.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// A tensor as the slots and tasks of a block name it.
struct SlotName {
  model::TensorId id = -1;
  int tensor = -1;  ///< Slot::tensor
  std::string name;
};

class DeviceBlock {
 public:
  DeviceBlock(const model::Graph& graph, std::string name);

  /// A buffer that exists when the block begins.
  int import(const SlotName& tensor, const placement::Mask& mask, program::Category category);
  [[nodiscard]] bool holds(model::TensorId tensor, const placement::Mask& mask) const;
  /// Expects that it holds the part.
  [[nodiscard]] int slot_of(model::TensorId tensor, const placement::Mask& mask) const;
  [[nodiscard]] const program::Slot& slot(int index) const { return block_.slots[index]; }
  /// Is a part only a view of a buffer that holds more?
  [[nodiscard]] bool is_view(model::TensorId tensor, const placement::Mask& mask) const;
  /// Adds a view of a part of a buffer, unless the device already has the part elsewhere.
  void view(model::TensorId tensor, const placement::Mask& of, const placement::Mask& part);

  /// Makes `task`, which is about to be added, read a part, after the task that wrote it. This and
  /// the next two return the part as an operand.
  program::Operand read(program::Task& task, model::TensorId tensor, const placement::Mask& mask);
  /// Makes it write a part into a buffer of its own.
  program::Operand write(program::Task& task, const SlotName& tensor, const placement::Mask& mask,
                         program::Category category);
  /// Makes it overwrite another part, which is gone then.
  program::Operand overwrite(program::Task& task, model::TensorId tensor,
                             const placement::Mask& from, const placement::Mask& to);
  /// Makes it write so many bytes of a tensor that nobody else reads.
  void scratch(program::Task& task, const SlotName& tensor, Bytes bytes);
  /// Records that it adds to a resident buffer.
  void add_to_resident(int tensor) {
    first_addition_.try_emplace(tensor, next());
    last_writer_[tensor] = next();
  }
  void push(program::Task task);
  /// The task about to be added begins after all computation so far.
  void follow_computation(program::Task& task) const;
  /// Makes transfers of an imported buffer begin after the first computation that reads it, because
  /// the block of another call knows only one queue of each stream.
  void hold_transfers(model::TensorId tensor, const placement::Mask& mask);

  /// The buffer outlives the block, counted as `category`.
  void keep(int slot, program::Category category);
  void spare(int slot) { survivors_.insert(slot); }
  /// The task after which a slot may be read, -1 if it is there from the start.
  [[nodiscard]] int ready(int slot) const {
    const auto found = ready_.find(slot);
    return found == ready_.end() ? -1 : found->second;
  }
  /// The task that last wrote a tensor, by Slot::tensor.
  [[nodiscard]] const std::map<int, int>& last_writer() const { return last_writer_; }
  /// The first task that adds to a resident buffer, likewise.
  [[nodiscard]] const std::map<int, int>& first_addition() const { return first_addition_; }
  /// By Slot::tensor of buffers that were there: the first task of every stream that reads it.
  [[nodiscard]] const std::map<int, std::map<program::Stream, int>>& first_readers() const {
    return first_readers_;
  }
  /// A buffer that several streams use is freed when all of them are done (last_uses.hpp).
  program::Block finish();

 private:
  [[nodiscard]] int next() const { return static_cast<int>(block_.tasks.size()); }
  int new_slot(const SlotName& tensor, const placement::Mask& mask, program::Category category);
  void wait_for(program::Task& task, int slot) const;

  const model::Graph& graph_;
  program::Block block_;
  std::map<model::TensorId, std::map<placement::Mask, int>> slots_;
  std::map<int, int> ready_;  ///< by slot: the task after which it may be read
  std::map<int, int> last_writer_;
  std::map<int, int> first_addition_;
  std::map<int, std::map<program::Stream, int>> first_readers_;
  std::set<int> external_;
  std::set<int> survivors_;
};

}  // namespace stratagem::lowering

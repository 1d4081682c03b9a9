// A block under construction: its tasks, and which buffers hold which parts of its tensors.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lowering/blocks/lowered_block.hpp"
#include "lowering/blocks/ring.hpp"
#include "lowering/stack/pieces.hpp"
#include "placement/distribution.hpp"

namespace stratagem::lowering {

/// A tensor as the slots and tasks of a block name it.
struct SlotName {
  model::TensorId id = -1;
  int tensor = -1;  ///< Slot::tensor
  std::string name;
};

/// A tensor's name within its segment: "attention.qkv" of "layers.12.attention.qkv".
SlotName name_of(const model::Graph& graph, const SegmentFacts& facts, model::TensorId tensor);

/// A part as a task's operation names it; slot -1: no buffer of the block.
program::Operand operand(int tensor, int slot, const placement::Part& part);

/// The block of one device, or of all devices of a grid of axes.
class BlockDraft {
 public:
  /// Keeps references to both.
  BlockDraft(const model::Graph& graph, const placement::Grid& grid, std::string name);

  /// A buffer that exists when the block begins.
  int import(const SlotName& tensor, const placement::Part& part, program::Category category);
  /// A buffer that tasks name themselves, for a copy of a part or one of another size.
  int add_slot(const SlotName& tensor, const placement::Part& part, program::Category category);
  [[nodiscard]] bool holds(model::TensorId tensor, const placement::Part& part) const;
  /// Where readers find a part: of several buffers that hold it the first. Expects that one does.
  [[nodiscard]] int slot_of(model::TensorId tensor, const placement::Part& part) const;
  /// The buffer that was last given a part.
  [[nodiscard]] int last_slot_of(model::TensorId tensor, const placement::Part& part) const;
  [[nodiscard]] const program::Slot& slot(int index) const { return lowered_.block.slots[index]; }
  program::Slot& slot(int index) { return lowered_.block.slots[index]; }
  /// A buffer existed when the block began.
  void set_there(int slot) { external_.insert(slot); }
  [[nodiscard]] bool was_there(int slot) const { return external_.contains(slot); }
  /// Later readers do not find a part here.
  void forget(model::TensorId tensor, const placement::Part& part) {
    std::erase_if(held_[tensor], [&](const Held& held) { return held.part == part; });
  }
  /// Is a part only a view of a buffer that holds more?
  [[nodiscard]] bool is_view(model::TensorId tensor, const placement::Part& part) const;
  /// Adds a view of a part of a buffer, unless the device already has the part elsewhere.
  void view(model::TensorId tensor, const placement::Part& of, const placement::Part& part);

  /// Makes `task`, which is about to be added, read a part, after the task that wrote it. This and
  /// the next two return the part as an operand.
  program::Operand read(program::Task& task, model::TensorId tensor, const placement::Part& part);
  /// Makes it write a part into a buffer of its own.
  program::Operand write(program::Task& task, const SlotName& tensor, const placement::Part& part,
                         program::Category category);
  /// Makes it overwrite another part, which is gone then.
  program::Operand overwrite(program::Task& task, model::TensorId tensor,
                             const placement::Part& from, const placement::Part& to);
  /// Records that it reads something from outside (by Slot::tensor).
  void note_reader(const program::Task& task, int tensor) {
    lowered_.first_readers[tensor].emplace(task.stream, next());
  }
  /// Records that it adds to a buffer that outlives calls.
  void note_addition(int tensor) {
    lowered_.first_addition.try_emplace(tensor, next());
    lowered_.last_writer[tensor] = next();
  }
  /// Tasks are of this operator from now on; -1: of none.
  void begin(model::OpId op) { running_ = op; }
  int push(program::Task task);
  /// The task about to be added, a collective on what is in a slot, begins after all computation so
  /// far. With `beside` it does not wait for the gradients of that kind that follow what it needs
  /// and have the same forward operator as `of`.
  void follow_computation(program::Task& task, int slot, model::OpId of,
                          std::optional<model::Pass> beside) const;
  /// Does the running operator multiply this tensor, which has rows of the product in a dimension?
  [[nodiscard]] bool multiplies_rows(model::TensorId tensor, int dimension) const;
  /// The task about to be added, a collective, is cut with the product beside it (pieces.hpp).
  void cut(const Cut& how) { cuts_[next()] = how; }
  /// The task about to be added gathers keys or values for attention that runs in a ring
  /// (ring.hpp), or scatters their gradients: `of` reads, or wrote, them.
  void pass_in_ring(model::OpId of, int ranks, cost::CollectiveKind kind);
  /// Does attention, or a gradient of it, read keys and values that both pass in a ring, as they
  /// come?
  [[nodiscard]] bool reads_what_passes(model::OpId attention) const;
  /// A part that was just written lies in a buffer of the framework (cost::GatherBuffers), unless
  /// it outlives the block: its slot has no bytes.
  void lies_apart(model::TensorId tensor, const placement::Part& part) {
    apart_.insert(last_slot_of(tensor, part));
  }
  /// The operator that wrote a slot here, or the one that is running.
  [[nodiscard]] model::OpId writer_of(int slot) const;
  [[nodiscard]] model::OpId running() const { return running_; }
  /// Makes transfers of an imported buffer begin after the first computation that reads it, because
  /// the block of another call knows only one queue of each stream.
  void hold_transfers(model::TensorId tensor, const placement::Part& part);

  /// The buffer outlives the block, counted as `category`.
  void keep(int slot, program::Category category);
  void spare(int slot) { survivors_.insert(slot); }
  /// And the block after this one waits for what sends it.
  void hand_on(int slot) {
    spare(slot);
    handed_on_.insert(slot);
  }
  /// The task after which a slot may be read, -1 if it is there from the start.
  [[nodiscard]] int ready(int slot) const;
  /// What neighbours need to know beside what is noted here.
  [[nodiscard]] LoweredBlock& lowered() { return lowered_; }
  /// A buffer that several streams use is freed when all of them are done (lifetimes.hpp).
  LoweredBlock finish();

 private:
  /// A buffer with a part of a tensor.
  struct Held {
    placement::Part part;
    int slot = -1;
  };

  [[nodiscard]] int next() const { return static_cast<int>(lowered_.block.tasks.size()); }
  void hold(model::TensorId tensor, const placement::Part& part, int slot);
  void wait_for(program::Task& task, int slot) const;
  /// Makes a task that overwrites a slot wait until other streams have sent what they read of it.
  void wait_for_senders(program::Task& task, int slot) const;
  void write_rings();
  void cut_products();
  /// Its forward operator and pass.
  [[nodiscard]] std::pair<model::OpId, model::Pass> ring_of(model::OpId op) const;
  [[nodiscard]] bool is_attention(int task) const;
  [[nodiscard]] std::vector<Ring> rings() const;
  void follow(const Moved& moved);
  void free_unused();
  /// Of the first `count` tasks; -1 if there is none.
  [[nodiscard]] int last_computation(int count) const;

  const model::Graph& graph_;
  const placement::Grid& grid_;
  LoweredBlock lowered_;
  std::map<model::TensorId, std::vector<Held>> held_;
  std::map<int, int> ready_;  ///< by slot: the task after which it may be read
  std::set<int> external_;
  std::set<int> survivors_;
  std::set<int> handed_on_;
  model::OpId running_ = -1;
  std::map<int, Cut> cuts_;                                    ///< by task
  std::map<std::pair<model::OpId, model::Pass>, Ring> rings_;  ///< see ring_of
  std::set<int> apart_;
  std::vector<model::OpId> part_of_;  ///< by task: the operator that it is a part of, or -1
};

}  // namespace stratagem::lowering

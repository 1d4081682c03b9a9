// Which slot of which call is which buffer, and when each is born and dies.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "program/passage.hpp"
#include "program/program.hpp"

namespace stratagem::program {

/// A buffer of a sequence. A task allocates it when it starts, and another frees it when it ends,
/// both of one iteration: where iterations overlap, calls run in the rounds that their lags say.
struct Buffer {
  std::optional<TaskOfCall> born;  ///< none: a resident that is always there
  std::optional<TaskOfCall> dies;  ///< none: nothing frees it
  const Slot* slot = nullptr;      ///< of the call in which it is born; null: a resident
  Bytes bytes;
  Category category = Category::temporaries;
  Residence place = Residence::device;
  model::TensorId tensor = -1;  ///< that it holds; -1: none
};

/// The buffers of one iteration of a sequence, by number: those that its calls allocate, in program
/// order, then its residents. Every slot that a call allocates is a buffer of its own: a tensor may
/// be there in two layouts, or be computed again. A buffer that outlives its call is identified by
/// its tensor and by its owner, which is the repeat of the forward pass of a slice of a
/// micro-batch; backward passes are of the last repeat. Expects check_references.
class Buffers {
 public:
  Buffers(const Program& program, const Sequence& sequence);

  [[nodiscard]] int count() const { return resident(static_cast<int>(sequence_.residents.size())); }
  [[nodiscard]] Buffer operator[](int number) const;
  /// The slot of a buffer's own call; nullptr: a resident.
  [[nodiscard]] const Slot* slot(int number) const {
    if (number >= resident(0)) return nullptr;
    return &program_.blocks[calls_[own_[number].call].block].slots[use(number).slot];
  }
  [[nodiscard]] int resident(int i) const { return static_cast<int>(own_.size()) + i; }

  /// What a slot of a call is: a buffer of this call, or the one that an earlier call of its owner
  /// has left; -1: a resident, or nothing that is alive.
  [[nodiscard]] int of(int call, int slot) const {
    const Bound& bound = calls_[call];
    const SlotUses& uses = uses_[bound.block];
    const int place = uses.place[slot], inherited = place - static_cast<int>(uses.own.size());
    if (place < 0) return -1;
    return inherited < 0 ? bound.own + place : inherited_[bound.inherited + inherited];
  }

  /// Calls `act` with each buffer that a task allocates: those of its slots, then residents.
  template <typename Act>
  void each_allocated(const TaskOfCall& by, const Act& act) const {
    for (const int slot : task(by).allocates) act(of(by.call, slot));
    const auto [first, last] = spans_from_.equal_range(by);
    for (auto i = first; i != last; ++i) act(i->second);
  }
  /// And each that it frees; -1 for a slot that is no buffer.
  template <typename Act>
  void each_freed(const TaskOfCall& by, const Act& act) const {
    for (const int slot : task(by).frees) act(of(by.call, slot));
    const auto [first, last] = spans_to_.equal_range(by);
    for (auto i = first; i != last; ++i) act(i->second);
  }

  /// The first that nothing frees, if there is one; residents are not asked.
  [[nodiscard]] std::optional<int> undying() const;
  /// The first time that a task allocates, reads, writes or frees what it must not.
  [[nodiscard]] const std::optional<Misuse>& misuse() const { return misuse_; }

 private:
  /// A buffer that a call allocates. There are millions: what follows from the call's block is not
  /// kept.
  struct Own {
    int call = 0;
    TaskOfCall dies{-1, -1};  ///< call -1: nothing frees it
  };
  struct Bound {
    int block = 0;
    int own = 0;        ///< its first of own_
    int inherited = 0;  ///< its first of inherited_
  };
  void number_calls();
  void follow_owners();
  void follow(const Passage& passage, int call, std::vector<int>& alive);
  /// Of a buffer that a call allocates: as its block uses it.
  [[nodiscard]] const SlotUses::Own& use(int number) const {
    const Bound& bound = calls_[own_[number].call];
    return uses_[bound.block].own[number - bound.own];
  }
  [[nodiscard]] const Task& task(const TaskOfCall& of) const {
    return program_.blocks[calls_[of.call].block].tasks[of.task];
  }

  const Program& program_;
  const Sequence& sequence_;
  std::vector<SlotUses> uses_;  ///< by block; empty of blocks that are not called
  std::vector<Bound> calls_;
  std::vector<Own> own_;
  std::vector<int> inherited_;                 ///< buffers; -1: none
  std::multimap<TaskOfCall, int> spans_from_;  ///< residents by the task that allocates them
  std::multimap<TaskOfCall, int> spans_to_;    ///< and by the one that frees them
  std::optional<Misuse> misuse_;
};

}  // namespace stratagem::program

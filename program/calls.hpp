// The calls of a sequence: stored as calls and loops over calls, read one after another.
#pragma once

#include <compare>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "placement/cell.hpp"

namespace stratagem::program {

/// Task `task` of a call starts after task `of_task` of the earlier call `of_call` has ended.
struct Wait {
  int task = 0;
  int of_call = 0;
  int of_task = 0;
  friend auto operator<=>(const Wait&, const Wait&) = default;
};

/// Before launching task `before` of a call (-1: each task) the host waits for the end of `of_task`
/// of `of_call`, which it launched earlier. With of_call -1 it waits for all that it has launched
/// so far on the stream with the number `of_task`, or, with of_task -1, on all streams of the
/// device but those of transfers. A send ends when the other stage takes it: a host that waited for
/// it would keep the other stage waiting.
struct HostWait {
  int before = -1;
  int of_call = -1;
  int of_task = -1;
  friend auto operator<=>(const HostWait&, const HostWait&) = default;
};

/// A call as a sequence stores it. In a loop it stands for a call of each turn, and says what that
/// of the first turn is: those of later turns are for later micro-batches, and wait for calls that
/// are as far before them.
struct StoredCall {
  int block = 0;
  int segment = -1;
  /// The grid (in Program::grids) whose axes the layouts refer to. Weights and their gradients
  /// state their own (Resident). -1 on irregular stages.
  int grid = -1;
  placement::Cell cell;
  int lag = 0;              ///< round r runs it for iteration r - lag, where there is such a one
  int versions_behind = 0;  ///< iteration i reads the weights after max(0, i - this) updates
  std::vector<Wait> waits;
  std::vector<HostWait> host_waits = {};  ///< ascending
  int begins_pass = -1;  ///< before this task the host does what a pass takes of its own; -1: none
  friend auto operator<=>(const StoredCall&, const StoredCall&) = default;
};

/// Stored calls first, ..., first + calls - 1, `turns` times one after the other. Each turn is for
/// micro-batches that are `step` later.
struct Loop {
  int first = 0;
  int calls = 1;
  int turns = 1;
  int step = 0;
  friend auto operator<=>(const Loop&, const Loop&) = default;
};

/// Goes through a range by number.
template <typename Range, typename Value>
class Numbered {
 public:
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  Numbered() = default;
  Numbered(const Range& range, std::size_t number) : range_(&range), number_(number) {}
  Value operator*() const { return (*range_)[number_]; }
  Numbered& operator++() { return ++number_, *this; }
  Numbered operator++(int) { return {*range_, number_++}; }
  friend bool operator==(const Numbered&, const Numbered&) = default;

 private:
  const Range* range_ = nullptr;
  std::size_t number_ = 0;
};

/// What a call, or its host, waits for. Calls are by number.
template <typename One>
class WaitsOf {
 public:
  WaitsOf() = default;
  WaitsOf(const std::vector<One>& stored, int later) : stored_(stored), later_(later) {}
  [[nodiscard]] std::size_t size() const { return stored_.size(); }
  [[nodiscard]] bool empty() const { return stored_.empty(); }
  [[nodiscard]] One operator[](std::size_t i) const {
    One wait = stored_[i];
    if (wait.of_call >= 0) wait.of_call += later_;
    return wait;
  }
  [[nodiscard]] Numbered<WaitsOf, One> begin() const { return {*this, 0}; }
  [[nodiscard]] Numbered<WaitsOf, One> end() const { return {*this, size()}; }

 private:
  std::span<const One> stored_;
  int later_ = 0;  ///< calls since the first turn
};

/// One execution of a block: for a segment (-1: none) of a cell. This is the binding of its slots.
/// The other members are as in StoredCall.
struct Call {
  int block = 0;
  int segment = -1;
  int grid = -1;
  placement::Cell cell;
  int lag = 0;
  int versions_behind = 0;
  WaitsOf<Wait> waits;
  WaitsOf<HostWait> host_waits;
  int begins_pass = -1;
};

/// The calls of one round by number. Loops do not nest; a call keeps its number however calls are
/// stored.
class Calls {
 public:
  /// A stored call, and the turn of its loop (0 outside of loops).
  struct Place {
    int stored = 0;
    int turn = 0;
  };

  Calls() = default;
  Calls(std::initializer_list<StoredCall> stored) : stored_(stored) {}
  /// `loops` ascend and share no calls.
  Calls(std::vector<StoredCall> stored, const std::vector<Loop>& loops = {});

  [[nodiscard]] std::size_t size() const { return stored_.size() + repeated_; }
  [[nodiscard]] Call operator[](std::size_t number) const;
  /// One call after the other, quicker than by number.
  class Iterator {
   public:
    using value_type = Call;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Call operator*() const { return calls_->call_at(place_, loop()); }
    Iterator& operator++();
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& one, const Iterator& other) {
      return one.number_ == other.number_;
    }

   private:
    friend class Calls;
    /// The first call, or the end.
    Iterator(const Calls& calls, std::size_t number) : calls_(&calls), number_(number) {}
    [[nodiscard]] const Loop* loop() const;

    const Calls* calls_ = nullptr;
    std::size_t number_ = 0;
    Place place_;
    std::size_t loop_ = 0;  ///< that it is in, or comes to next
  };
  /// Expects that calls and loops stay as they are meanwhile.
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }

  [[nodiscard]] const std::vector<StoredCall>& stored() const { return stored_; }
  [[nodiscard]] std::vector<StoredCall>& stored() { return stored_; }
  [[nodiscard]] const std::vector<Loop>& loops() const { return loops_; }
  /// The loop that has a stored call; null: none.
  [[nodiscard]] const Loop* loop_of(int stored) const;
  [[nodiscard]] Place place(std::size_t number) const;
  [[nodiscard]] int number(const Place& place) const;
  /// What is the same in all turns: all but micro-batches and waits.
  [[nodiscard]] const StoredCall& body(std::size_t number) const {
    return stored_[place(number).stored];
  }

 private:
  /// `loop`: that of the stored call; null: none.
  [[nodiscard]] Call call_at(const Place& place, const Loop* loop) const;

  std::vector<StoredCall> stored_;
  std::vector<Loop> loops_;
  std::vector<int> before_;   ///< by loop: calls of earlier loops' later turns
  std::size_t repeated_ = 0;  ///< calls of later turns
};

}  // namespace stratagem::program

// Counts the later turns of loops before a call.
#include "program/calls.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::program {

Calls::Calls(std::vector<StoredCall> stored, const std::vector<Loop>& loops)
    : stored_(std::move(stored)), loops_(loops) {
  int end = 0;
  for (const Loop& loop : loops_) {
    expects(loop.first >= end && loop.calls > 0 && loop.turns > 0,
            "loops ascend, and do not overlap");
    end = loop.first + loop.calls;
    before_.push_back(static_cast<int>(repeated_));
    repeated_ += static_cast<std::size_t>(loop.turns - 1) * loop.calls;
  }
  expects(end <= static_cast<int>(stored_.size()), "loops are of stored calls");
}

const Loop* Calls::loop_of(int stored) const {
  const auto after = std::ranges::upper_bound(loops_, stored, {}, &Loop::first);
  if (after == loops_.begin()) return nullptr;
  const Loop& loop = *std::prev(after);
  return stored < loop.first + loop.calls ? &loop : nullptr;
}

Calls::Place Calls::place(std::size_t number) const {
  const auto n = static_cast<int>(number);
  for (std::size_t l = loops_.size(); l-- > 0;) {
    const Loop& loop = loops_[l];
    const int since = n - before_[l] - loop.first;
    if (since < 0) continue;
    if (since < loop.turns * loop.calls)
      return {loop.first + since % loop.calls, since / loop.calls};
    return {loop.first + since - (loop.turns - 1) * loop.calls, 0};
  }
  return {n, 0};
}

int Calls::number(const Place& place) const {
  const auto after = std::ranges::upper_bound(loops_, place.stored, {}, &Loop::first);
  if (after == loops_.begin()) return place.stored;
  const Loop& loop = *std::prev(after);
  const int earlier = before_[std::prev(after) - loops_.begin()];
  const bool inside = place.stored < loop.first + loop.calls;
  return place.stored + earlier + (inside ? place.turn : loop.turns - 1) * loop.calls;
}

Call Calls::operator[](std::size_t number) const {
  const auto [stored, turn] = place(number);
  const StoredCall& of = stored_[stored];
  Call call{.block = of.block,
            .segment = of.segment,
            .grid = of.grid,
            .cell = of.cell,
            .lag = of.lag,
            .versions_behind = of.versions_behind,
            .waits = {of.waits, 0},
            .host_waits = {of.host_waits, 0}};
  if (turn == 0) return call;
  const Loop& loop = *loop_of(stored);
  call.cell.micro_batch += turn * loop.step;
  call.waits = {of.waits, turn * loop.calls};
  call.host_waits = {of.host_waits, turn * loop.calls};
  return call;
}

}  // namespace stratagem::program

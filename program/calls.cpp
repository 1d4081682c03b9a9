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
  const Place at = place(number);
  return call_at(at, at.turn == 0 ? nullptr : loop_of(at.stored));
}

Call Calls::call_at(const Place& place, const Loop* loop) const {
  const StoredCall& of = stored_[place.stored];
  const int later = place.turn == 0 ? 0 : place.turn * loop->calls;
  Call call{.block = of.block,
            .segment = of.segment,
            .grid = of.grid,
            .cell = of.cell,
            .lag = of.lag,
            .versions_behind = of.versions_behind,
            .waits = {of.waits, later},
            .host_waits = {of.host_waits, later},
            .begins_pass = of.begins_pass};
  if (place.turn > 0) call.cell.micro_batch += place.turn * loop->step;
  return call;
}

const Loop* Calls::Iterator::loop() const {
  return loop_ < calls_->loops_.size() ? &calls_->loops_[loop_] : nullptr;
}

Calls::Iterator& Calls::Iterator::operator++() {
  ++number_;
  ++place_.stored;
  const Loop* in = loop();
  if (in == nullptr || place_.stored < in->first + in->calls) return *this;
  if (++place_.turn < in->turns) {
    place_.stored = in->first;
  } else {
    place_.turn = 0;
    ++loop_;
  }
  return *this;
}

}  // namespace stratagem::program

// What a simulation will read of its past, relative to an instant. If two are equal, what follows
// is equal, too. Of two turns of a loop that holds until the loop of any actor ends, and on if as
// many turns are left in one as in the other. Of two rounds it holds while others follow.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "sim/instant.hpp"

namespace stratagem::sim {

/// Numbers in an order that their writers agree on: instants count from `now`, and amounts that are
/// no whole numbers are equal in every bit.
class RelativeState {
 public:
  explicit RelativeState(Instant now = {}) : now_(now) {}

  [[nodiscard]] Instant now() const { return now_; }
  void add(std::int64_t number) { numbers_.push_back(number); }
  void add(Instant when) { numbers_.push_back(when == never ? past - 1 : (when - now_).count); }
  void add_bits(double amount) { numbers_.push_back(std::bit_cast<std::int64_t>(amount)); }
  /// An instant that makes nothing later any more.
  void add_past() { numbers_.push_back(past); }

  friend bool operator==(const RelativeState& a, const RelativeState& b) {
    return a.numbers_ == b.numbers_;
  }

 private:
  /// No simulation is as long as this.
  static constexpr std::int64_t past = -never.picoseconds;

  Instant now_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace stratagem::sim

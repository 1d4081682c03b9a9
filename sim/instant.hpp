// When: whole picoseconds since the start of the simulation.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

#include "base/quantity.hpp"

namespace stratagem::sim {

/// Whole numbers, because sums of them do not depend on the order: devices that do the same reach
/// the same instant. Enough for a hundred days.
struct Instant {
  std::int64_t picoseconds = 0;
  friend constexpr auto operator<=>(Instant, Instant) = default;
};

inline constexpr Instant never{std::numeric_limits<std::int64_t>::max()};

/// A duration, rounded once to whole picoseconds.
struct Ticks {
  std::int64_t count = 0;
};
inline Ticks to_ticks(Seconds duration) { return {std::llround(duration.value * 1e12)}; }

constexpr Instant operator+(Instant when, Ticks duration) {
  return {when.picoseconds + duration.count};
}
constexpr Ticks operator-(Instant later, Instant earlier) {
  return {later.picoseconds - earlier.picoseconds};
}
constexpr Seconds to_seconds(Ticks duration) {
  return {static_cast<double>(duration.count) * 1e-12};
}

}  // namespace stratagem::sim

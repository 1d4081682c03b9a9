// When: whole picoseconds since the start of the simulation.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

#include "base/input_error.hpp"
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
/// The shortest duration that does not fit into an Instant.
inline constexpr Seconds longest_task{9e6};
struct Uncountable : InputError {
  using InputError::InputError;
};
/// Throws Uncountable for a duration that does not fit.
inline Ticks to_ticks(Seconds duration) {
  if (!(std::abs(duration.value) < longest_task.value))
    throw Uncountable("", "", "tasks of less than 9e6 seconds", "a longer one");
  return {std::llround(duration.value * 1e12)};
}

// These throw InputError beyond what can be counted.
constexpr Ticks operator*(std::int64_t times, Ticks duration) {
  Ticks product;
  if (__builtin_mul_overflow(times, duration.count, &product.count))
    throw InputError("", "", "a simulation of less than 106 days", "a longer one");
  return product;
}
constexpr Ticks operator+(Ticks a, Ticks b) {
  Ticks sum;
  if (__builtin_add_overflow(a.count, b.count, &sum.count))
    throw InputError("", "", "a simulation of less than 106 days", "a longer one");
  return sum;
}
constexpr Instant operator+(Instant when, Ticks duration) {
  return {(Ticks{when.picoseconds} + duration).count};
}
constexpr Ticks operator-(Instant later, Instant earlier) {
  return {later.picoseconds - earlier.picoseconds};
}
constexpr Seconds to_seconds(Ticks duration) {
  return {static_cast<double>(duration.count) * 1e-12};
}

}  // namespace stratagem::sim

// Sanitizers take many times as long: there, tests of long lists look at some of their elements.
#pragma once

#include <cstddef>

namespace stratagem {

/// From each element that is looked at to the next one: 1, with sanitizers `every`.
constexpr std::size_t stride([[maybe_unused]] std::size_t every) {
#ifdef __SANITIZE_ADDRESS__
  return every;
#else
  return 1;
#endif
}

/// Tests that wait for ranks, which wait for each other, are for optimised code alone: a check runs
/// both.
inline constexpr bool sanitized = stride(2) > 1;

}  // namespace stratagem

// The round that traces show: the one in which the measured iteration ends.
#pragma once

#include <algorithm>

#include "sim/timeline.hpp"

namespace stratagem::report {

inline std::size_t measured_round(const sim::Timeline& timeline) {
  return timeline.measured_iteration() + timeline.lag;
}

/// When its first task begins on any device.
inline sim::Instant first_begin(const sim::Timeline& timeline) {
  sim::Instant first = sim::never;
  for (const sim::ActorTimes& times : timeline.times) {
    for (const sim::Instant begin : times.begins[measured_round(timeline)])
      first = std::min(first, begin);
  }
  return first;
}

/// When the iteration before the measured one ends.
inline sim::Instant iteration_begin(const sim::Timeline& timeline) {
  const std::size_t number = timeline.measured_iteration();
  return number == 0 ? sim::Instant{0} : timeline.iteration_ends[number - 1];
}

}  // namespace stratagem::report

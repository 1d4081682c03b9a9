// How far a simulation jumps: some periods later.
#pragma once

#include "sim/instant.hpp"

namespace stratagem::sim {

struct Jump {
  int periods = 0;
  Ticks period;

  /// An instant that so many periods later is what `when` is now. Less than 0 is no instant:
  /// unknown, or never ran.
  [[nodiscard]] Instant of(Instant when) const {
    return when < Instant{0} || when == never ? when : when + periods * period;
  }
};

}  // namespace stratagem::sim

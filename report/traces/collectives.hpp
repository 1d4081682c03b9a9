// What a device communicates in a round.
#pragma once

#include <vector>

#include "program/program.hpp"
#include "sim/timeline.hpp"

namespace stratagem::report {

/// A task that communicates with other devices.
struct DeviceCollective {
  int task = 0;  ///< its number in a round
  int lag = 0;   ///< of its call
  int communicator = 0;
  program::Collective collective;
};

/// Those of a device in the order of its tasks.
std::vector<DeviceCollective> collectives_of(const program::Program& program,
                                             const sim::Timeline& timeline, int device);

}  // namespace stratagem::report

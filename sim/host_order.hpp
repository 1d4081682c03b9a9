// Births and deaths of a device's buffers in the order in which a host comes to them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/memory_changes.hpp"
#include "sim/timeline.hpp"
#include "strategies/program.hpp"

namespace stratagem::sim {

/// A birth or a death as a framework sees it that allocates and frees while it launches.
struct HostChange {
  Instant clock;  ///< of the host
  int buffer = -1;
  Bytes bytes;    ///< below 0: a death
  Instant ready;  ///< of a death: when collectives are done with the buffer
};

/// How many kernels a stream takes before launches wait for the first of them to end. Source:
/// forums.developer.nvidia.com/t/68937 (about 1,000 of one stream, of others as many more).
inline constexpr int most_pending_launches = 1000;

/// The actor's `changes` in program order, births of a task before its deaths. A host comes to a task
/// as the timeline says, and no sooner than the computation that is most_pending_launches before it
/// has ended.
std::vector<HostChange> in_host_order(const strategies::Program& program, const Timeline& timeline,
                                      std::size_t actor, const std::vector<MemoryChange>& changes);

}  // namespace stratagem::sim

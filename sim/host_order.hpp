// Births and deaths of a device's buffers in the order in which a host comes to them.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/stack.hpp"
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

/// The actor's `changes` in program order, births of a task before its deaths. A host comes to a
/// task as the timeline says, and no sooner than the computation that is most_pending_launches
/// before it has ended. To a forward cell it comes no sooner than everything that it has launched
/// on the device has ended, since the sizes of a micro-batch are copied from the device before it
/// begins (Megatron-LM, mpu/data.py, broadcast_data, on ranks that read data), and where the stack
/// says so (cost::HostWaits, cost::StageExchanges) to every other pass, too. It comes to a gather of
/// parameters when what the plan orders before it has ended: the order is there to bound memory, and
/// frameworks keep it on the host (FSDP's limit_all_gathers; the fetch events of DeepSpeed's
/// partitioned_param_coordinator.py).
///
/// Where the host waits for each launch, or for each exchange of a stage, the order of time is left
/// as it is: it is never ahead, or by less than a cell. A stage that reads what describes
/// tensors waits before each pass but the last stage's backward ones, which receive none; on one
/// tensor rank, too, where nothing needs describing.
std::vector<HostChange> in_host_order(const strategies::Program& program, const Timeline& timeline,
                                      std::size_t actor, const std::vector<MemoryChange>& changes,
                                      const cost::Stack& stack);

}  // namespace stratagem::sim

// The allocations and frees of a device's buffers, in the order in which the host executes them.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/stack.hpp"
#include "program/program.hpp"
#include "sim/memory_changes.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// An allocation or a free by a framework that allocates and frees while it launches.
struct HostChange {
  Instant clock;  ///< of the host
  int buffer = -1;
  Bytes bytes;    ///< below 0: a free
  Instant ready;  ///< of a free: when collectives are done with the buffer
};

/// How many kernels a stream takes before launches wait for the first of them to end. Source:
/// forums.developer.nvidia.com/t/68937 (about 1,000 of one stream, of others as many more).
inline constexpr int most_pending_launches = 1000;

/// The actor's `changes` in program order, a task's allocations before its frees. The host reaches
/// a task when the timeline says, but not before these have ended:
///   - any task: the computation that is most_pending_launches before it;
///   - a forward cell: all that the host has launched on the device, since the sizes of a
///     micro-batch are copied from the device before it begins (Megatron-LM, mpu/data.py,
///     broadcast_data, on ranks that read data);
///   - every other pass: the same, where the stack says so (cost::HostWaits);
///   - a gather of parameters: the tasks that the plan orders before it. The order is there to
///     bound memory, and frameworks enforce it on the host (FSDP's limit_all_gathers; the fetch
///     events of DeepSpeed's partitioned_param_coordinator.py).
///
/// If the host waits for each launch, or for each exchange of a stage, the order of time is kept:
/// the host is never ahead, or by less than a cell. A stage that first reads a description of the
/// tensors waits before each pass except the last stage's backward passes, which receive none. It
/// waits even with one tensor rank, where there is nothing to describe.
std::vector<HostChange> in_host_order(const program::Program& program, const Timeline& timeline,
                                      std::size_t actor, const std::vector<MemoryChange>& changes,
                                      const cost::Stack& stack);

}  // namespace stratagem::sim

// The peak memory of devices, by the three measures that tools show, and its contents.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "program/program.hpp"
#include "sim/memory_changes.hpp"
#include "sim/metrics.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// The highest of each, over time and, for a run, over its devices.
struct MemoryFigures {
  Bytes resident;   ///< what lives from one iteration to the next: torch.cuda.memory_allocated
  Bytes allocated;  ///< sum of live tensors: torch.cuda.max_memory_allocated
  Bytes reserved;   ///< what the framework's allocator holds: torch.cuda.max_memory_reserved
  Bytes used;       ///< with what driver, libraries and communicators take: nvidia-smi
};

/// The memory of devices that are alike in all of this. Each part of what is used lasts from begin
/// to end, except `reserved`.
///   used = reserved + outside(): context, communicators, and the workspace if the driver gives it
struct DeviceMemory {
  int device = 0;   ///< the first of them
  int count = 1;    ///< devices that are alike
  MemoryPeak peak;  ///< of the program's buffers
  std::string at;   ///< the task that allocated the last of it: "mlp.gelu of layers.3 in F(stage 0,
                    ///< micro-batch 1)"; empty: none, residents alone
  Bytes resident;   ///< what lives from one iteration to the next, with the workspace as below
  Bytes allocated;  ///< with the workspace if the allocator gives it
  Bytes reserved;   ///< highest; what is allocated where the stack has no allocator of its own
  Bytes context;    ///< of the driver
  Bytes communicators;  ///< buffers of all that the device is in
  int communicator_count = 0;
  Bytes workspace;                   ///< of the library of matrix products
  bool workspace_allocated = false;  ///< is it among the allocated?
  std::vector<int> sequences = {};   ///< of the devices that are alike
  int releases = 0;  ///< times that cached segments went back to the driver, which had no more

  [[nodiscard]] Bytes outside() const;
  [[nodiscard]] Bytes used() const { return reserved + outside(); }
  friend bool operator==(const DeviceMemory&, const DeviceMemory&) = default;
};

/// What stands beside the buffers of the program on a device; they are left out.
DeviceMemory memory_beside(const program::Program& program, int device,
                           const cost::Profile& profile, const cost::Stack& stack,
                           const std::vector<int>& groups_beside);

/// The distinct devices, in the order of the first of each; folding does not change them. The
/// stack's allocator replays residents (parameters, then gradients, then optimizer states, each in
/// the order of layers), then its workspace, then allocations and frees as the host comes to their
/// tasks (host.hpp). Buffers of all streams share its pools. Its limit is the profile's memory less
/// everything else; what it needs beyond that makes `used` larger than the memory. `segments` are
/// the names of the plan's segments, for describing peaks. `groups_beside` are sizes of groups that
/// every device is in, beside those of the program, and has communicators for.
std::vector<DeviceMemory> device_memory(const program::Program& program, const Timeline& timeline,
                                        const cost::Profile& profile, const cost::Stack& stack,
                                        const std::vector<std::string>& segments = {},
                                        const std::vector<int>& groups_beside = {});

/// The one that uses most, the first of equals.
const DeviceMemory& fullest(const std::vector<DeviceMemory>& devices);

MemoryFigures highest(const std::vector<DeviceMemory>& devices);

}  // namespace stratagem::sim

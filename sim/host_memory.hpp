// What servers hold in the memory of their processors, and on their drives.
#pragma once

#include <vector>

#include "sim/metrics.hpp"
#include "sim/timeline.hpp"
#include "strategies/program.hpp"

namespace stratagem::sim {

/// Of servers that are alike in all of this: what their devices keep there, all together.
struct HostMemory {
  int server = 0;                 ///< the first of them
  int count = 1;                  ///< servers that are alike
  MemoryPeak peak;                ///< no task is told: `peak.task` is -1
  std::vector<MemoryStep> steps;  ///< of the first iteration, in the order of time
};

/// Servers with anything of the program in their memory, distinct ones, in the order of the first of
/// each; device d stands in server d / `gpus_per_server`. The operating system, the framework's process
/// and its pinned buffers are not counted, but those between the host and its drives are.
/// With `where` for the drives what lies on those, of which a file system and checkpoints are not counted.
std::vector<HostMemory> host_memory(const strategies::Program& program, const Timeline& timeline,
                                    int gpus_per_server,
                                    strategies::Residence where = strategies::Residence::host);

/// The one that holds most, the first of equals; expects that there is one.
const HostMemory& fullest(const std::vector<HostMemory>& hosts);

/// The highest peak; 0 without servers.
Bytes highest(const std::vector<HostMemory>& hosts);

}  // namespace stratagem::sim

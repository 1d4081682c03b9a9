// The memory that a program uses on servers: of their processors, and on their drives.
#pragma once

#include <vector>

#include "program/program.hpp"
#include "sim/metrics.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// Servers that are alike in all of this, and what the devices of one of them keep there together.
struct HostMemory {
  int server = 0;                 ///< the first of them
  int count = 1;                  ///< servers that are alike
  MemoryPeak peak;                ///< no task is told: `peak.task` is -1
  std::vector<MemoryStep> steps;  ///< of the rounds, in the order of time
};

/// The distinct servers that hold anything of the program in memory, in the order of the first of
/// each. Device d stands in server d / `gpus_per_server`. Buffers between the host and its drives
/// count; the operating system, the framework's process and its pinned buffers do not. With `where`
/// = drives: what lies on the drives, without file system and checkpoints. Rounds are as
/// in memory_changes.
std::vector<HostMemory> host_memory(const program::Program& program, const Timeline& timeline,
                                    int gpus_per_server,
                                    program::Residence where = program::Residence::host,
                                    std::optional<int> rounds = {});

/// The one that holds most, the first of equals; expects that there is one.
const HostMemory& fullest(const std::vector<HostMemory>& hosts);

/// The highest peak; 0 without servers.
Bytes highest(const std::vector<HostMemory>& hosts);

}  // namespace stratagem::sim

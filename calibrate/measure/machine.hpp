// Describes the machine that measures.
#pragma once

#include <string>

#include "base/quantity.hpp"

namespace stratagem::calibrate {

/// Of several servers that measure together, the first.
struct Machine {
  std::string host;       ///< its name
  std::string processor;  ///< "Intel(R) Xeon(R) Platinum 8168 CPU @ 2.70GHz"
  Bytes cache;            ///< of the last level, 0 where the system does not tell
  Bytes memory;           ///< 0 where the system does not tell
  int cores = 1;          ///< that are on line
  int ranks = 1;          ///< processes that measure together, of all servers
  int servers = 1;

  /// Of the server that has the most.
  [[nodiscard]] int ranks_of_server() const { return (ranks + servers - 1) / servers; }
};

/// From Linux: gethostname, sysconf, /proc/cpuinfo.
Machine this_machine();

/// Today, "2026-11-22", in universal time.
std::string today();

}  // namespace stratagem::calibrate

// How full devices get, as the three tools show it that people read memory from.
#pragma once

#include "base/quantity.hpp"
#include "cost/profile.hpp"
#include "sim/timeline.hpp"
#include "strategies/program.hpp"

namespace stratagem::sim {

/// The highest of each, over time and, for a run, over its devices.
struct MemoryFigures {
  Bytes allocated;  ///< sum of live tensors: torch.cuda.max_memory_allocated
  Bytes reserved;   ///< what the framework's allocator holds: torch.cuda.max_memory_reserved
  Bytes used;       ///< with what driver, libraries and communicators take: nvidia-smi
};

/// Of all devices. Today the allocator holds what is live, and the rest is the profile's context.
MemoryFigures memory_figures(const strategies::Program& program, const Timeline& timeline,
                             const cost::Profile& profile);

}  // namespace stratagem::sim

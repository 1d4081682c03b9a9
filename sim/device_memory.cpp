// Live tensors, and what stands around them.
#include "sim/device_memory.hpp"

#include <algorithm>

#include "sim/metrics.hpp"

namespace stratagem::sim {

MemoryFigures memory_figures(const strategies::Program& program, const Timeline& timeline,
                             const cost::Profile& profile) {
  MemoryFigures highest;
  for (std::size_t a = 0; a < timeline.actors.size(); ++a)
    highest.allocated = std::max(highest.allocated, memory_peak(program, timeline, a).total);
  highest.reserved = highest.allocated;
  highest.used = highest.reserved + profile.context.value;
  return highest;
}

}  // namespace stratagem::sim

// What a device allocates and frees in its first iteration, replayed in a framework's allocator.
#pragma once

#include <vector>

#include "sim/caching_allocator.hpp"
#include "sim/memory_changes.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// Frameworks allocate and free while they launch: changes by task, each when the host comes to the
/// task. Periods that the timeline leaves out are replayed until the allocator is again as it was a
/// period before: those that are left then change nothing.
void replay(CachingAllocator& allocator, const Timeline& timeline, std::size_t actor,
            const std::vector<MemoryChange>& changes);

}  // namespace stratagem::sim

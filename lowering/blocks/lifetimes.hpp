// When the buffers of a block are allocated and freed.
#pragma once

#include <set>

#include "program/program.hpp"

namespace stratagem::lowering {

/// Marks the tasks of a block that allocate and free buffers. A buffer is allocated by the first
/// task that uses it, unless it is `external` (there before the block), and freed by the last,
/// unless it is in `survivors` (needed after the block). An external buffer that no task uses and
/// nobody needs is freed by the last task.
void set_lifetimes(program::Block& block, const std::set<int>& external,
                   const std::set<int>& survivors);

}  // namespace stratagem::lowering

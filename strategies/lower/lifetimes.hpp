// When the buffers of a block are born and die.
#pragma once

#include <set>

#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Notes births and deaths at the tasks of a block: a buffer is born with the task that first uses
/// it and dies with the last that does, unless it is in `external` (there before the block: no
/// birth) or in `survivors` (needed after it: no death). An external buffer that no task uses and
/// nobody needs dies with the last task.
void set_lifetimes(Block& block, const std::set<int>& external, const std::set<int>& survivors);

}  // namespace stratagem::strategies

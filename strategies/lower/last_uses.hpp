// Buffers that several streams use, so that no single one of their tasks is surely the last.
#pragma once

#include <set>

#include "strategies/program.hpp"

namespace stratagem::strategies {

/// The slots that tasks of a block read or write.
std::set<int> used_slots(const Block& block);

/// Appends, where it is needed, a task that does nothing but wait: for all uses of buffers whose last
/// use in the order of tasks does not follow all others, and for reads of `survivors` which no
/// computation has waited for. Freed after it, a buffer is not freed too early; in exchange the
/// computation after the block waits for these transfers.
void join_streams(Block& block, const std::set<int>& survivors);

}  // namespace stratagem::strategies

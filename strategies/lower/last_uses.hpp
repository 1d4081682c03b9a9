// Buffers that several streams use, so that no single one of their tasks is surely the last.
#pragma once

#include <set>

#include "strategies/program.hpp"

namespace stratagem::strategies {

/// The slots that tasks of a block read or write.
std::set<int> used_slots(const Block& block);

/// Sees to it that the last use of a buffer, in the order of tasks, has waited for all others. If it
/// is a transfer it begins after them. Else, and for reads of `survivors` which no computation has
/// waited for, a task is appended that does nothing but wait: the computation after the block waits
/// for these transfers.
void join_streams(Block& block, const std::set<int>& survivors);

}  // namespace stratagem::strategies

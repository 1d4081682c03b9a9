// Frees of buffers that several streams use: no single task is surely the last.
#pragma once

#include <set>
#include <string>

#include "program/program.hpp"

namespace stratagem::lowering {

/// The slots that tasks of a block read or write.
std::set<int> used_slots(const program::Block& block);

/// A task that does nothing but take part in the order of its stream.
program::Task idle_task(std::string name);

/// Makes the last use of a buffer, in the order of tasks, wait for all others. A transfer waits at
/// its beginning. Otherwise a task is appended that only waits, so that the computation after the
/// block waits for these transfers. The same is done for reads of `survivors` for which no
/// computation has waited.
void join_streams(program::Block& block, const std::set<int>& survivors);

}  // namespace stratagem::lowering

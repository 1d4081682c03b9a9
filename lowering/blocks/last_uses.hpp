// Frees of buffers that several streams use: no single task is surely the last.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "program/program.hpp"

namespace stratagem::lowering {

/// By slot: the tasks of a block that read or write it, in order.
std::map<int, std::vector<int>> uses_by_slot(const program::Block& block);

/// A task that does nothing but take part in the order of its stream.
program::Task idle_task(std::string name);

/// Makes the last use of a buffer, in the order of tasks, wait for all others. A transfer waits at
/// its beginning. Otherwise a task is appended that only waits, so that the computation after the
/// block waits for these transfers. The same is done for reads of `survivors` for which no
/// computation has waited.
void join_streams(program::Block& block, const std::set<int>& survivors);

}  // namespace stratagem::lowering

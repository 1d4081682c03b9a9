// When the buffers of a block are allocated and freed. Of those that several streams use, no single
// task is surely the last to do so.
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

/// Marks the tasks of a block that allocate and free buffers. A buffer is allocated by the first
/// task that uses it, unless it is `external` (there before the block), and freed by the last,
/// unless it is in `survivors` (needed after the block). An external buffer that no task uses and
/// nobody needs is freed by the last task.
void set_lifetimes(program::Block& block, const std::set<int>& external,
                   const std::set<int>& survivors);

}  // namespace stratagem::lowering

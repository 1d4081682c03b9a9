// What holds between the passes of lower.cpp.
#pragma once

#include <functional>

#include "lowering/cells/cells.hpp"
#include "lowering/stages/stages.hpp"
#include "program/program.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// Looks whether a pass has left what it promises. If not, the pass has a defect, whatever the plan
/// is: throws BrokenPromise, which names it. Builds with NDEBUG do not look.
void check_after(const char* pass, const std::function<void()>& check);

// Each throws BrokenPromise if it does not hold.

/// Every device is in one device class, and the device classes of a replica have together as many
/// devices as the replica.
void expect_stages(const Stages& stages);

/// Every device class has each cell of its replicas once a round, and F before B before W of one
/// iteration, stage and micro-batch.
void expect_cells(const strategies::Plan& plan, const Stages& stages, const CellOrder& order);

/// In every block a task waits for earlier tasks and names slots that there are, and a slot is
/// allocated at most once, freed at most once, and not freed before it is allocated.
void expect_blocks(const program::Program& program);

}  // namespace stratagem::lowering

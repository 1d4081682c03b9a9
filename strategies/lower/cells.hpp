// Puts the cells of every stage into the one order that data and op-orders leave.
#pragma once

#include <vector>

#include "strategies/plan.hpp"

namespace stratagem::strategies {

/// By stage: its cells in the order in which it runs them. Data flows forward from stage to stage,
/// turns at the last one and flows back. Throws InputError, printing one cycle, if the orders
/// contradict that or each other, and naming two cells of a stage that nothing orders.
std::vector<std::vector<Cell>> ordered_cells(const Plan& plan);

}  // namespace stratagem::strategies

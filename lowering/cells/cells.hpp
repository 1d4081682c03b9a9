// Orders the cells of every device class, by data dependencies and op-orders.
#pragma once

#include <vector>

#include "lowering/stages/stages.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// A cell in the round of a device class. Round r runs the class's cells of iteration r - lag;
/// without lag rounds are iterations.
struct ScheduledCell {
  placement::Cell cell;
  int lag = 0;
  bool with_next = false;  ///< runs as one with the cell after it
  int place = 0;           ///< in one order of all cells of all devices
};

struct CellOrder {
  std::vector<std::vector<ScheduledCell>> rounds;  ///< one round each, by device class
  int lag = 0;                                     ///< the largest of all
};

/// How many iterations must be looked at to see in which order cells follow each other: one with a
/// flush, else as many as can be under way at once and some more.
int iterations_to_order(const strategies::Plan& plan, const Stages& stages);

/// Data flows forward as the stages' flows say, and back where gradients return; a backward cell
/// follows its own forward cell, W follows B. Plans without a flush are unrolled over as many
/// iterations as it takes to see the round of every device class repeat.
/// Throws InputError, printing one cycle with the devices of every cell, if the orders contradict
/// that or each other, and naming two cells of a device that nothing orders; without a flush also
/// where a device has several stages.
CellOrder ordered_cells(const strategies::Plan& plan, const Stages& stages);

/// Does a cell compute weight gradients?
bool weighs(const strategies::Plan& plan, const placement::Cell& cell);

/// The place in `cells`, those of a device class, of the cell that computes the last weight
/// gradients of a copy of a stage in an iteration; -1 if none does.
int last_weight_cell(const strategies::Plan& plan, int stage, int copy,
                     const std::vector<ScheduledCell>& cells);

}  // namespace stratagem::lowering

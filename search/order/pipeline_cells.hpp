// The cells of a plan's pipeline as blocks that repeat, for a search of their order.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "placement/cell.hpp"
#include "search/order/repetend.hpp"
#include "strategies/plan/plan.hpp"
#include "study/run.hpp"

namespace stratagem::search {

/// A block for each cell of micro-batch 0.
///   devices  the device classes that run it
///   span     its computations, and the collectives that they wait for, alone on the machine, in
///            whole units; the longest of its classes'. Messages between stages take no time.
///   after    cells whose results it reads
///   held     what a forward cell leaves on a device until the end of the micro-batch's last
///            backward cell there, in 1024ths of what a device has for it: its memory without what
///            lives there when steps begin, and what one block needs meanwhile
///   asked    of a plan file the op-orders. Orders of a strategy's schedule are what is sought.
struct PipelineCells {
  Repeating problem;
  std::vector<placement::Cell> kinds;  ///< of the blocks
  Seconds unit;
  /// What rounding to whole units changes in the cells of a device, added up, as a share of the
  /// busiest device's work.
  double rounding = 0;
};

/// Expects a run that is not refused, and its plan. Throws InputError for plans whose cells do not
/// all repeat alike: with copies of stages, token slices, paired cells, no flush, activations that
/// wait elsewhere or in parts, backward cells of which some are split, or op-orders of a plan file
/// that do not say the same of all micro-batches; and where a device has no memory for activations.
PipelineCells cells_of(const study::Run& run, const strategies::Plan& plan);

/// The plan with the found order in place of its own.
strategies::Plan with_order(const strategies::Plan& plan, const PipelineCells& cells,
                            const Repetend& repetend);

}  // namespace stratagem::search

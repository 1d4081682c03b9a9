// What a search for the order of a pipeline's cells found, for people.
#pragma once

#include <string>

#include "search/order/pipeline_cells.hpp"
#include "study/run.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {

/// The repetend as a picture, a line for each device class; what is proved of it; and the run with
/// its own order beside the found one, both simulated.
std::string order_table(const study::Run& run, const search::PipelineCells& cells,
                        const search::Repetend& found, const study::Outcome& own,
                        const study::Outcome& with_found);

/// There is none.
std::string no_order(const study::Run& run, const search::PipelineCells& cells);

}  // namespace stratagem::report

// What a page draws of one simulated run: its cells in time, its memory, its links, its plan.
#pragma once

#include "base/json_writer.hpp"
#include "study/run.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {

/// An object whose keys docs/guide/reports.md lists: among them the memory of a GPU, and for each
/// device class its bars (the cells of the measured iteration) and its memory in the first. Wants a
/// timeline with all turns (Repeats::simulated). A refused run has only its group.
Json picture(const study::Run& run, const study::Simulated& simulated);

}  // namespace stratagem::report

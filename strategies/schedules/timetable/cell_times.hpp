// When the cells of a pipeline begin and end if nothing but order and data holds them up.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "placement/cell.hpp"
#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

struct Span {
  int begin = 0;
  int end = 0;
};

/// The earliest times at `costs` of cells of `stages` stages in a row (F from stage to stage, B
/// back, W after B) under the given orders. Throws InputError if they have a cycle.
std::map<placement::Cell, Span> cell_times(int stages, const std::vector<placement::Cell>& cells,
                                           const std::vector<placement::Order>& orders,
                                           const CellCosts& costs);

/// The same for the cells and orders of a timetable.
std::map<placement::Cell, Span> cell_times(int stages, const Timetable& timetable,
                                           const CellCosts& costs);

}  // namespace stratagem::strategies

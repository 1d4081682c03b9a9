// What ZB-H1 and ZB-H2 share.
#pragma once

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// 1F1B with split backward cells: rank s warms up with slope * (p-1-s) forward cells, and its
/// weight cells lag slope * s behind its backward cells, so that every rank runs the triple
/// F(x), B(x - slope(p-1-s)), W(x - slope(p-1)).
Timetable zero_bubble(const Pipeline& pipeline, int slope);

}  // namespace stratagem::strategies

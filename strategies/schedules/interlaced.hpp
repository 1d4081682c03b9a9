// Interlaced pipeline, see interlaced.cpp.
#pragma once

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// The embeddings are stage 0 on every rank, the stages behind them are counted from 1.
Timetable interlaced(const Pipeline& pipeline);

}  // namespace stratagem::strategies

// Interlaced pipelines: embedding and head run on all ranks, between the cells of the stages.
#pragma once

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// The embeddings are stage 0 on every rank, the head is the last stage on every rank.
Timetable interlaced(const Pipeline& pipeline);

}  // namespace stratagem::strategies

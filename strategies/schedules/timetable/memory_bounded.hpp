// What ZB-V, V-Half and V-Min share: a V of two stages on every rank within a memory limit.
#pragma once

#include <array>
#include <functional>

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// When a rank begins the four cells F chunk 0, F chunk 1, B chunk 1, B chunk 0 of micro-batch 0 if
/// every cell takes 1; those of micro-batch m begin 6m later, and W fills what is left.
using VPattern = std::array<int, 4>;

/// The shortest timetable found in which no rank holds more than `most` activations of a stage; of
/// equally short ones, that with the smallest bubble. Any numbers have one if most >= 2.
/// Without `pattern` only the rules that need none are tried.
Timetable memory_bounded(const Pipeline& pipeline, int most,
                         const std::function<VPattern(int rank)>& pattern);

}  // namespace stratagem::strategies

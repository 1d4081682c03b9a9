// What schedules of a period take: time, and memory.
#pragma once

#include <cstdint>
#include <vector>

#include "search/order/repeating.hpp"

namespace stratagem::search {

/// When each block could begin if devices were never busy. Throws InputError if blocks wait for
/// each other in a circle.
std::vector<int> earliest_begins(const Repeating& problem);

/// From the first begin of a micro-batch to its last end.
int latency_of(const Repeating& problem, const std::vector<int>& begins);

/// The most that each device holds at once. Expects the period and the begins of a schedule.
std::vector<std::int64_t> peaks_of(const Repeating& problem, const Repetend& found);

/// Are its peaks?
bool within_limits(const Repeating& problem, const Repetend& found);

}  // namespace stratagem::search

// List scheduling of cells that repeat: a first schedule, which need not be the best.
#pragma once

#include <optional>

#include "search/order/repeating.hpp"

namespace stratagem::search {

/// Of 500 tries the schedule of this period with the shortest latency, within all limits; nothing
/// where none succeeds, which proves nothing. Sets period, begins, latency and peaks.
std::optional<Repetend> best_listed(const Repeating& problem, int period);

}  // namespace stratagem::search

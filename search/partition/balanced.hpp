// Stages of unequal numbers of layers: embedding and loss count as what they take.
#pragma once

#include <optional>
#include <vector>

#include "search/partition/rows.hpp"

namespace stratagem::search {

/// The row behind each stage, in order, such that the slowest stage is as fast as possible; of such
/// divisions one whose fullest device needs the least memory. A stage for each entry of
/// `in_flight`, each with a row at least. Nothing if no division fits.
std::optional<std::vector<int>> balanced_stages(const Rows& rows);

}  // namespace stratagem::search

// Conversions between layouts as steps of the devices of a grid.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/redistribute/aligned_grid.hpp"

namespace stratagem::lowering {

/// A conversion that communicates is one collective in every group of devices that differ only
/// along its axes, ranks in the order of the grid; any other is a select on every device.
std::vector<Step> within_group(const AlignedGrid& grid, const std::vector<std::int64_t>& shape,
                               placement::Layout from,
                               const std::vector<placement::Conversion>& conversions);

/// What the devices of the grid hold in a layout, in the order of the grid.
std::vector<Piece> pieces_in(const placement::Layout& layout, const AlignedGrid& grid,
                             const std::vector<std::int64_t>& shape);

}  // namespace stratagem::lowering

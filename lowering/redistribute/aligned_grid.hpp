// Recognises uniform layouts in the masks that devices hold, on one grid for one or more sides.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/redistribute/steps.hpp"
#include "placement/layout.hpp"

namespace stratagem::lowering {

/// Devices as a grid of prime axes, and the layout of a tensor over it on every side: device i (the
/// last axis fastest) holds mask_at(layouts[side], shape, sizes, coordinates of i).
struct AlignedGrid {
  std::vector<int> sizes;
  std::vector<placement::Layout> layouts;  ///< one per side
  std::vector<int> devices;
};

/// The sides hold one tensor, one piece per device, on the same devices. A division of a dimension
/// or value into n parts gives one digit per prime factor of n, in any order of factors; equal
/// digits on two sides are one axis, and devices equal in all digits are replicas on all sides.
/// Empty where a side is not uniform (equal parts, each on equally many devices) or where the
/// digits are not independent. Two sides give up to two grids, with the one's or the other's digits
/// outermost, since the order of axes decides which layouts lie between them (layout.hpp).
/// Grids with so many axes that a search over their layouts would take long get larger axes:
/// neighbours with equal roles on all sides move together.
/// Source: nnScaler's RVD layouts and device alignment (graph/gener/rvd).
std::vector<AlignedGrid> align(const std::vector<std::vector<Piece>>& sides,
                               const std::vector<std::int64_t>& shape);

}  // namespace stratagem::lowering

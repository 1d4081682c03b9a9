// Masks as boxes: the value is one more dimension, so that what is covered and what is left can be
// cut and compared like elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "placement/mask.hpp"

namespace stratagem::lowering {

/// The ranges of a mask, then the range of its partial values in units of 1/`unit` of the value.
using Region = std::vector<placement::Range>;

/// Expects the mask's value count to divide `unit`.
Region region_of(const placement::Mask&, std::int64_t unit);
/// A unit for all masks: the least common multiple of their value counts.
std::int64_t common_unit(const std::vector<placement::Mask>&);

bool inside(const placement::Range& inner, const placement::Range& outer);
/// The common part of two boxes; nullopt if it is empty.
std::optional<Region> common_part(const Region&, const Region&);
/// Disjoint boxes that are together what `all` has and `part`, a box inside it, has not.
std::vector<Region> without(Region all, const Region& part);

/// Elements of the ranges of a mask; of a region, those times units of the value.
std::int64_t size_of(const std::vector<placement::Range>& box);
/// "[0, 4) x [2, 8)", and ", from 1/4 to 2/4 of the value" where that is not all of it.
std::string to_text(const Region&, std::int64_t unit);

}  // namespace stratagem::lowering

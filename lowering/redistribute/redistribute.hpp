// Chooses the steps that bring every consumer of a tensor its mask.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/redistribute/steps.hpp"

namespace stratagem::lowering {

/// Nothing, where every consumer's device already holds its mask. Otherwise, with one mask on every
/// device on both sides,
///   equal device sets, uniform layouts on one grid: the cheapest conversions (layout.hpp)
///   disjoint device sets, uniform layouts: conversions on both sides of sends
///     (uniform.hpp)
/// and else every consumer takes what it needs from whoever has it (cover.hpp). Producers that
/// share a device are joined first where together they are one mask. Within and across groups the
/// numbers of partial values only tell the devices apart: the devices' parts have the right sum,
/// but part 0 of 2 need not be the sum of the producers' parts 0 and 1 of 4. The cover keeps to the
/// numbers.
/// Throws InputError where elements or partial values that a consumer reads are nowhere, or are not
/// parts that make up its value. Deterministic; the names of the devices play no role.
/// Source: Lin et al., nnScaler, OSDI 2024, section 4; its code, graph/gener.
Redistribution redistribute(const std::vector<std::int64_t>& shape,
                            const std::vector<Piece>& producers,
                            const std::vector<Piece>& consumers);

}  // namespace stratagem::lowering

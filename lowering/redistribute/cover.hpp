// The general case: every consumer takes what it needs from whoever has it, each element and
// partial value once.
#pragma once

#include <vector>

#include "lowering/redistribute/steps.hpp"

namespace stratagem::lowering {

/// Consumers in turn take disjoint parts of the producers' masks until theirs is covered: full
/// values before partial ones, then their own device's before others, then those of the device that
/// has sent the fewest elements so far. Any number of masks per device, on both sides. Steps:
/// select; send; broadcast (a part that goes to several devices); and where parts meet select (so
/// that partial values see equal elements), sum, concatenate.
/// A part of a value is taken from a larger one only where all producers have equal counts of
/// partial values, so that all consumers do so: the first part is all of it, the others are zeros,
/// which every device makes itself.
/// Throws InputError that names device and ranges where nobody has what a consumer needs.
std::vector<Step> cover(const std::vector<Piece>& producers, const std::vector<Piece>& consumers);

}  // namespace stratagem::lowering

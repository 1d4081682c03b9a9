// Finds rules that say nothing whatever the sizes of the plan: slips of whoever wrote them.
#pragma once

#include "strategies/language/parsed_rule.hpp"

namespace stratagem::strategies {

/// Throws InputError at rule.path if a coordinate that is a sum of multiples of sizes and of
/// variables that stand alone somewhere is never within its axis, such as the stage in F(S, m), and
/// if both cells are written alike. Coordinates of other forms are not judged, and each for itself.
void check_can_exist(const ParsedRule& rule);

}  // namespace stratagem::strategies

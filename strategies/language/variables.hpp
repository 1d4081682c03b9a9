// What the coordinates of a rule tell of its variables: which values are worth trying, in which
// order they are looped over, and whether any values give cells that exist.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "strategies/language/parsed_rule.hpp"

namespace stratagem::strategies {

/// One loop. The variable takes every value for which `coordinate`, in which it stands, is within
/// its axis: value at 0 + slope * variable.
struct VariableRange {
  int place = 0;
  int axis = 0;
  const Expression* coordinate = nullptr;
  std::int64_t slope = 1;
  std::vector<int> let;  ///< which let-names the coordinate needs, in order
};

/// Outermost loop first. Variables that stand alone in a coordinate come first, in the order in
/// which they first appear, and range over that axis. Then comes whichever first has a coordinate
/// that is a straight line of it and otherwise made of sizes and of variables that have come. As
/// both cells of an instance must exist, no instance is lost, whatever coordinate is taken.
/// `rule` must outlive the result. Throws InputError at rule.path for a variable without such a
/// coordinate. `sizes` are S, M, K, R.
std::vector<VariableRange> variable_ranges(const ParsedRule& rule,
                                           const std::array<std::int64_t, 4>& sizes);

/// Refuses rules that say nothing whatever the sizes of the plan: slips of whoever wrote them.
/// Throws InputError at rule.path if a coordinate that is a sum of multiples of sizes and of
/// variables that stand alone somewhere is never within its axis, such as the stage in F(S, m), and
/// if both cells are written alike. Coordinates of other forms are not judged, and each for itself.
void check_can_exist(const ParsedRule& rule);

}  // namespace stratagem::strategies

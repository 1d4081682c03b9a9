// Which values of a rule's variables are worth trying, and in which order they are looped over.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

/// The coordinate in which the variable stands alone, if there is one.
std::optional<ParsedRule::Coordinate> alone_in(const ParsedRule& rule, int place);

}  // namespace stratagem::strategies

// How the value of an expression follows one of its names: the slope where it is a straight line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strategies/language/parsed_rule.hpp"

namespace stratagem::strategies {

struct Dependence {
  /// Per step of the name; nullopt where it is not one number.
  std::optional<std::int64_t> slope = 0;
  std::optional<std::int64_t> value;  ///< where it is always the same
};

/// The dependence of an expression, given those of the values at the places that it reads.
Dependence dependence(const Expression& expression, std::span<const Dependence> places);

/// By place: the dependence of every name of the rule on that at `place` (-1: on none), where the
/// names with `known` values (by place, others nullopt) are constants. Let-names follow theirs.
std::vector<Dependence> dependences(const ParsedRule& rule, int place,
                                    const std::vector<std::optional<std::int64_t>>& known);

}  // namespace stratagem::strategies

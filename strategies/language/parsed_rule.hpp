// An order rule, parsed, its names at fixed places: what loops over variables evaluate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/language/chain.hpp"
#include "strategies/plan/order_rule.hpp"

namespace stratagem::strategies {

/// Of coordinates: stage, micro-batch, slice. The first three names are their sizes: S, M, K.
inline constexpr int axis_count = 3;

struct ParsedRule {
  CellPattern before;
  CellPattern after;
  std::vector<std::string> names;  ///< S, M, K, R; variables as they first appear; let-names
  int first_variable = 0;
  int first_let = 0;
  std::vector<Expression> let;  ///< its i-th value stands at place first_let + i
  std::optional<Expression> where;
  std::string path;

  /// A coordinate of one of the patterns; the axis is its place in the pattern.
  struct Coordinate {
    int axis;
    const Expression* expression;
  };
  [[nodiscard]] std::vector<Coordinate> coordinates() const;
};

/// Throws InputError at rule.path for what is not of the language, for names that stand for
/// nothing, and for let-names that are given twice or not used.
ParsedRule parse_rule(const OrderRule& rule);

/// By place: does the value of `expression` depend on it, directly or through let-names?
std::vector<bool> places_used(const ParsedRule& rule, const Expression& expression);

}  // namespace stratagem::strategies

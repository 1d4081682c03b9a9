// Runs expressions' steps on straight lines in place of values, and solves the coordinates for
// variables, one at a time.
#include "strategies/language/variables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

using Coordinate = ParsedRule::Coordinate;
using Number = std::optional<std::int64_t>;

/// How a value follows the names of a rule.
struct Line {
  /// By place: per step of the name there, all others fixed; nullopt where it is not one number.
  std::vector<Number> slopes;
  Number value;  ///< where it is always the same
};

Number combine(Calculation operation, Number a, Number b) {
  return a && b ? apply(operation, *a, *b) : std::nullopt;
}

Line combine(Calculation operation, const Line& a, const Line& b) {
  Line result{.slopes = {}, .value = combine(operation, a.value, b.value)};
  for (std::size_t place = 0; place < a.slopes.size(); ++place) {
    const Number left = a.slopes[place];
    const Number right = b.slopes[place];
    Number slope;
    if (left == 0 && right == 0) {
      slope = 0;
    } else if (operation == Calculation::add || operation == Calculation::subtract) {
      slope = combine(operation, left, right);
    } else if (operation == Calculation::multiply) {
      slope = combine(operation, a.value ? a.value : b.value, a.value ? right : left);
    }
    result.slopes.push_back(slope);
  }
  return result;
}

/// && and || may skip what they depend on, so only "not at all" is known of them.
Line of_condition(const Expression& expression, std::span<const Line> names) {
  Line result{.slopes = std::vector<Number>(names.size(), 0), .value = std::nullopt};
  for (const int used : expression.places()) {
    for (std::size_t place = 0; place < names.size(); ++place) {
      if (names[used].slopes[place] != 0) result.slopes[place] = std::nullopt;
    }
  }
  return result;
}

/// The line of an expression, given those of the names.
Line line_of(const Expression& expression, std::span<const Line> names) {
  std::vector<Line> stack;
  for (const Instruction& step : expression.code()) {
    if (step.operation == Calculation::both || step.operation == Calculation::either)
      return of_condition(expression, names);
    if (step.operation == Calculation::constant) {
      stack.push_back({std::vector<Number>(names.size(), 0), step.operand});
    } else if (step.operation == Calculation::name) {
      stack.push_back(names[expression.places()[step.operand]]);
    } else {
      const Line right = stack.back();
      stack.pop_back();
      stack.back() = combine(step.operation, stack.back(), right);
    }
  }
  return stack.back();
}

/// By place: the lines of all names, sizes and variables having these values where they are known.
/// Let-names follow theirs.
std::vector<Line> lines_of_names(const ParsedRule& rule, const std::vector<Number>& known) {
  const Line fixed{.slopes = std::vector<Number>(rule.names.size(), 0), .value = std::nullopt};
  std::vector<Line> result(rule.names.size(), fixed);
  for (int place = 0; place < rule.first_let; ++place) {
    result[place].slopes[place] = 1;
    result[place].value = known[place];
  }
  for (std::size_t i = 0; i < rule.let.size(); ++i)
    result[rule.first_let + i] = line_of(rule.let[i], result);
  return result;
}

/// The coordinate in which the variable stands alone, if there is one.
std::optional<Coordinate> alone_in(const ParsedRule& rule, int place) {
  for (const Coordinate& coordinate : rule.coordinates()) {
    const Expression& expression = *coordinate.expression;
    if (expression.is_bare_name() && expression.places().front() == place) return coordinate;
  }
  return std::nullopt;
}

/// Is a coordinate within its axis for some sizes >= 1 and variables from 0 to the size of their
/// axis - 1? A line is its value at the smallest of them and multiples of what they have more. Of
/// what is no line it is not known, so it may be.
bool can_exist(const ParsedRule& rule, const Coordinate& coordinate,
               std::span<const Line> at_smallest, std::span<const Line> names) {
  constexpr std::int64_t large = 1'000'000'000'000;  // sums of smaller ones do not overflow
  const auto unknown = [](const Number& x) { return !x || *x > large || *x < -large; };
  const Number base = line_of(*coordinate.expression, at_smallest).value;
  const std::vector<Number> slopes = line_of(*coordinate.expression, names).slopes;
  if (unknown(base) || std::any_of(slopes.begin(), slopes.begin() + rule.first_let, unknown))
    return true;
  for (const int sign : {1, -1}) {
    std::array<std::int64_t, 4> growth{};  // with each size
    if (sign < 0) ++growth[coordinate.axis];
    for (int place = 0; place < rule.first_let; ++place) {
      const std::int64_t slope = sign * *slopes[place];
      if (place < rule.first_variable) {
        growth[place] += slope;
      } else if (slope != 0) {
        const auto alone = alone_in(rule, place);
        if (!alone) return true;
        growth[alone->axis] += std::max<std::int64_t>(0, slope);
      }
    }
    if (sign * *base < 0 && std::ranges::none_of(growth, [](auto g) { return g > 0; }))
      return false;
  }
  return true;
}

bool alike(const CellPattern& a, const CellPattern& b) {
  return a.pass == b.pass && a.repeat == b.repeat && a.coordinates == b.coordinates;
}

VariableRange range_of(const ParsedRule& rule, int place, const Coordinate& coordinate,
                       std::int64_t slope) {
  VariableRange range{
      .place = place, .axis = coordinate.axis, .coordinate = coordinate.expression, .slope = slope};
  const std::vector<bool> used = places_used(rule, *coordinate.expression);
  for (int i = 0; i < static_cast<int>(rule.let.size()); ++i) {
    if (used[rule.first_let + i]) range.let.push_back(i);
  }
  return range;
}

/// The range of the first of the variables `open` that a coordinate without another one tells.
std::optional<VariableRange> next_range(const ParsedRule& rule, std::span<const Line> names,
                                        const std::vector<int>& open) {
  for (const int place : open) {
    for (const Coordinate& coordinate : rule.coordinates()) {
      const Number slope = line_of(*coordinate.expression, names).slopes[place];
      const std::vector<bool> used = places_used(rule, *coordinate.expression);
      const auto in_the_way = [&](int other) { return other != place && used[other]; };
      if (slope && *slope != 0 && std::ranges::none_of(open, in_the_way))
        return range_of(rule, place, coordinate, *slope);
    }
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const ParsedRule& rule, const std::vector<int>& open) {
  std::vector<std::string> names;
  std::vector<std::string> coordinates;
  for (const int place : open) names.push_back("\"" + rule.names[place] + "\"");
  for (const auto& [axis, expression] : rule.coordinates())
    coordinates.push_back(expression->text());
  throw InputError("", rule.path,
                   fmt::format("a coordinate that tells the values of {} (alone, or with + - and "
                               "whole factors)",
                               fmt::join(names, ", ")),
                   fmt::format("{}", fmt::join(coordinates, ", ")));
}

}  // namespace

std::vector<VariableRange> variable_ranges(const ParsedRule& rule,
                                           const std::array<std::int64_t, 4>& sizes) {
  std::vector<Number> known(rule.names.size());
  std::ranges::copy(sizes, known.begin());
  const std::vector<Line> names = lines_of_names(rule, known);
  std::vector<VariableRange> ranges;
  std::vector<int> open;
  for (int place = rule.first_variable; place < rule.first_let; ++place) {
    if (const auto coordinate = alone_in(rule, place)) {
      ranges.push_back(range_of(rule, place, *coordinate, 1));
    } else {
      open.push_back(place);
    }
  }
  while (!open.empty()) {
    const auto next = next_range(rule, names, open);
    if (!next) refuse(rule, open);
    std::erase(open, next->place);
    ranges.push_back(*next);
  }
  return ranges;
}

void check_can_exist(const ParsedRule& rule) {
  constexpr std::array<const char*, axis_count> ranges = {
      "a stage from 0 to S-1", "a micro-batch from 0 to M-1", "a slice from 0 to K-1"};
  std::vector<Number> smallest(rule.names.size(), 0);
  std::fill_n(smallest.begin(), rule.first_variable, 1);
  const std::vector<Line> at_smallest = lines_of_names(rule, smallest);
  const std::vector<Line> names = lines_of_names(rule, std::vector<Number>(rule.names.size()));
  for (const Coordinate& coordinate : rule.coordinates()) {
    if (can_exist(rule, coordinate, at_smallest, names)) continue;
    throw InputError("", rule.path, std::string(ranges[coordinate.axis]) + " in some plan",
                     "\"" + coordinate.expression->text() + "\"");
  }
  if (alike(rule.before, rule.after))
    throw InputError("", rule.path, "two cells", "a cell before itself");
}

}  // namespace stratagem::strategies

// Runs an expression's steps on slopes in place of values.
#include "strategies/language/dependence.hpp"

#include <algorithm>
#include <cstddef>

namespace stratagem::strategies {
namespace {

using Number = std::optional<std::int64_t>;

Number combine(Calculation operation, Number a, Number b) {
  return a && b ? apply(operation, *a, *b) : std::nullopt;
}

Number slope_of(Calculation operation, const Dependence& a, const Dependence& b) {
  if (a.slope == 0 && b.slope == 0) return 0;
  if (operation == Calculation::add || operation == Calculation::subtract)
    return combine(operation, a.slope, b.slope);
  if (operation == Calculation::multiply)
    return combine(operation, a.value ? a.value : b.value, a.value ? b.slope : a.slope);
  return std::nullopt;
}

/// && and || may skip what they depend on, so only "not at all" is known of them.
Dependence of_condition(const Expression& expression, std::span<const Dependence> places) {
  const bool none =
      std::ranges::all_of(expression.places(), [&](int place) { return places[place].slope == 0; });
  return {.slope = none ? Number(0) : std::nullopt, .value = std::nullopt};
}

}  // namespace

Dependence dependence(const Expression& expression, std::span<const Dependence> places) {
  std::vector<Dependence> stack;
  for (const Instruction& step : expression.code()) {
    if (step.operation == Calculation::both || step.operation == Calculation::either)
      return of_condition(expression, places);
    if (step.operation == Calculation::constant) {
      stack.push_back({.slope = 0, .value = step.operand});
    } else if (step.operation == Calculation::name) {
      stack.push_back(places[expression.places()[step.operand]]);
    } else {
      const Dependence right = stack.back();
      stack.pop_back();
      const Dependence left = stack.back();
      stack.back() = {.slope = slope_of(step.operation, left, right),
                      .value = combine(step.operation, left.value, right.value)};
    }
  }
  return stack.back();
}

std::vector<Dependence> dependences(const ParsedRule& rule, int place,
                                    const std::vector<std::optional<std::int64_t>>& known) {
  std::vector<Dependence> result(rule.names.size());
  for (int i = 0; i < rule.first_let; ++i)
    result[i] = {.slope = i == place ? 1 : 0, .value = i == place ? std::nullopt : known[i]};
  for (std::size_t i = 0; i < rule.let.size(); ++i)
    result[rule.first_let + i] = dependence(rule.let[i], result);
  return result;
}

}  // namespace stratagem::strategies

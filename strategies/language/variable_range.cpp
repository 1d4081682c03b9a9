// Solves coordinates for variables, one variable at a time.
#include "strategies/language/variable_range.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/dependence.hpp"

namespace stratagem::strategies {
namespace {

class Solver {
 public:
  Solver(const ParsedRule& rule, const std::array<std::int64_t, 4>& sizes)
      : rule_(rule), known_(rule.names.size()), determined_(rule.names.size(), false) {
    for (std::size_t i = 0; i < sizes.size(); ++i) known_[i] = sizes[i];
    std::fill_n(determined_.begin(), rule.first_variable, true);
  }

  std::vector<VariableRange> solve() {
    for (int place = rule_.first_variable; place < rule_.first_let; ++place) {
      if (const auto coordinate = alone_in(rule_, place)) add(place, *coordinate, 1);
    }
    while (std::find(determined_.begin(), determined_.begin() + rule_.first_let, false) !=
           determined_.begin() + rule_.first_let)
      solve_one();
    return std::move(ranges_);
  }

 private:
  /// Determines the first variable that can be.
  void solve_one() {
    std::string unsolved;
    for (int place = rule_.first_variable; place < rule_.first_let; ++place) {
      if (determined_[place]) continue;
      const std::vector<Dependence> places = dependences(rule_, place, known_);
      for (const auto& coordinate : rule_.coordinates()) {
        const auto slope = dependence(*coordinate.expression, places).slope;
        if (!slope || *slope == 0 || !others_determined(*coordinate.expression, place)) continue;
        return add(place, coordinate, *slope);
      }
      unsolved += (unsolved.empty() ? "\"" : ", \"") + rule_.names[place] + "\"";
    }
    throw InputError("", rule_.path,
                     "a coordinate that tells the values of " + unsolved +
                         " (alone, or with + - and whole factors)",
                     text());
  }

  [[nodiscard]] bool others_determined(const Expression& expression, int place) const {
    const std::vector<bool> used = places_used(rule_, expression);
    for (int other = rule_.first_variable; other < rule_.first_let; ++other) {
      if (used[other] && other != place && !determined_[other]) return false;
    }
    return true;
  }

  void add(int place, const ParsedRule::Coordinate& coordinate, std::int64_t slope) {
    determined_[place] = true;
    VariableRange range{.place = place,
                        .axis = coordinate.axis,
                        .coordinate = coordinate.expression,
                        .slope = slope};
    const std::vector<bool> used = places_used(rule_, *coordinate.expression);
    for (int i = 0; i < static_cast<int>(rule_.let.size()); ++i) {
      if (used[rule_.first_let + i]) range.let.push_back(i);
    }
    ranges_.push_back(std::move(range));
  }

  /// The coordinates, as written.
  [[nodiscard]] std::string text() const {
    std::string result;
    for (const auto& [axis, expression] : rule_.coordinates())
      result += (result.empty() ? "" : ", ") + expression->text();
    return result;
  }

  const ParsedRule& rule_;
  std::vector<std::optional<std::int64_t>> known_;
  std::vector<bool> determined_;
  std::vector<VariableRange> ranges_;
};

}  // namespace

std::vector<VariableRange> variable_ranges(const ParsedRule& rule,
                                           const std::array<std::int64_t, 4>& sizes) {
  return Solver(rule, sizes).solve();
}

std::optional<ParsedRule::Coordinate> alone_in(const ParsedRule& rule, int place) {
  for (const auto& coordinate : rule.coordinates()) {
    const Expression& expression = *coordinate.expression;
    if (expression.is_bare_name() && expression.places().front() == place) return coordinate;
  }
  return std::nullopt;
}

}  // namespace stratagem::strategies

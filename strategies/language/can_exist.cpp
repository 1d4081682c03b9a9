// Bounds a coordinate over all sizes >= 1 and all variables from 0 to their size - 1.
#include "strategies/language/can_exist.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/dependence.hpp"
#include "strategies/language/variable_range.hpp"

namespace stratagem::strategies {
namespace {

using Number = std::optional<std::int64_t>;

/// A coordinate as base + sum of (size - 1) * of_size + sum of variable * its factor, a variable
/// being at most the size of its axis - 1.
struct Line {
  std::int64_t base = 0;
  std::array<std::int64_t, 4> of_size{};
  std::vector<std::pair<int, std::int64_t>> of_variable;  ///< axis and factor

  /// Can base and growth together reach 0? `sign` turns the line, `axis` adds that size - 1.
  [[nodiscard]] bool reaches_zero(std::int64_t sign, int axis) const {
    std::array<std::int64_t, 4> growth{};
    for (std::size_t size = 0; size < growth.size(); ++size) growth[size] = sign * of_size[size];
    if (axis >= 0) ++growth[axis];
    for (const auto& [variable_axis, factor] : of_variable)
      growth[variable_axis] += std::max<std::int64_t>(0, sign * factor);
    return sign * base >= 0 || std::ranges::any_of(growth, [](auto g) { return g > 0; });
  }
};

class Judge {
 public:
  explicit Judge(const ParsedRule& rule)
      : rule_(rule), nothing_known_(rule.names.size()), smallest_(rule.names.size(), 0) {
    std::fill_n(smallest_.begin(), rule.first_variable, 1);
  }

  /// nullopt where the coordinate is no such line.
  [[nodiscard]] std::optional<Line> line(const Expression& coordinate) const {
    const Number base = dependence(coordinate, dependences(rule_, -1, smallest_)).value;
    if (!base || too_large(*base)) return std::nullopt;
    Line line{.base = *base};
    for (int place = 0; place < rule_.first_let; ++place) {
      const Number slope = dependence(coordinate, dependences(rule_, place, nothing_known_)).slope;
      if (!slope || too_large(*slope)) return std::nullopt;
      if (place < rule_.first_variable) {
        line.of_size[place] = *slope;
      } else if (*slope != 0) {
        const auto alone = alone_in(rule_, place);
        if (!alone) return std::nullopt;
        line.of_variable.emplace_back(alone->axis, *slope);
      }
    }
    return line;
  }

 private:
  /// For sums that must not overflow.
  static bool too_large(std::int64_t x) { return x > 1'000'000'000'000 || x < -1'000'000'000'000; }

  const ParsedRule& rule_;
  std::vector<Number> nothing_known_;
  std::vector<Number> smallest_;  ///< sizes 1, variables 0
};

bool alike(const CellPattern& a, const CellPattern& b) {
  return a.pass == b.pass && a.repeat == b.repeat && a.coordinates == b.coordinates;
}

}  // namespace

void check_can_exist(const ParsedRule& rule) {
  constexpr std::array<const char*, axis_count> ranges = {
      "a stage from 0 to S-1", "a micro-batch from 0 to M-1", "a slice from 0 to K-1"};
  const Judge judge(rule);
  for (const auto& [axis, expression] : rule.coordinates()) {
    const auto line = judge.line(*expression);
    if (!line || (line->reaches_zero(1, -1) && line->reaches_zero(-1, axis))) continue;
    throw InputError("", rule.path, std::string(ranges[axis]) + " in some plan",
                     "\"" + expression->text() + "\"");
  }
  if (alike(rule.before, rule.after))
    throw InputError("", rule.path, "two cells", "a cell before itself");
}

}  // namespace stratagem::strategies

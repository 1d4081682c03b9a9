// Loops over the variables of an order rule and keeps the instances whose cells exist. As every
// variable can be told from a coordinate, no two instances have the same cells.
#include "strategies/language/expand.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/variables.hpp"

namespace stratagem::strategies {

using placement::Cell;
using placement::Order;

namespace {

/// A forgotten index multiplies the instances by a size; better an error than a full memory.
constexpr std::int64_t most_instances = 10'000'000;

class Expansion {
 public:
  Expansion(const ParsedRule& rule, const Extent& extent)
      : rule_(rule),
        sizes_{extent.stages, extent.micro_batches, extent.slices, extent.repeats},
        ranges_(variable_ranges(rule, sizes_)),
        values_(rule.names.size(), 0) {
    std::copy(sizes_.begin(), sizes_.end(), values_.begin());
    for (int i = 0; i < static_cast<int>(rule.let.size()); ++i) all_let_.push_back(i);
  }

  std::vector<Order> run() {
    loop(0);
    return std::move(orders_);
  }

 private:
  void loop(std::size_t depth) {
    if (depth == ranges_.size()) return instance();
    const auto [begin, end] = bounds(ranges_[depth]);
    for (std::int64_t value = begin; value < end; ++value) {
      values_[ranges_[depth].place] = value;
      loop(depth + 1);
    }
  }

  /// All v with 0 <= g + slope * v < size, g being the coordinate at v = 0.
  std::pair<std::int64_t, std::int64_t> bounds(const VariableRange& range) {
    values_[range.place] = 0;
    evaluate_let(range.let);
    const std::int64_t least =
        checked(apply(Calculation::subtract, 0, range.coordinate->evaluate(values_)));
    const std::int64_t most = add(sizes_[range.axis] - 1, least);
    const bool rises = range.slope > 0;
    const std::int64_t first = rises ? least : most;
    const std::int64_t last = rises ? most : least;
    // ceil(x / slope) = -floor(-x / slope)
    return {-divide(-first, range.slope), add(divide(last, range.slope), 1)};
  }

  void instance() {
    if (++examined_ > most_instances) {
      throw InputError("", rule_.path,
                       "at most " + std::to_string(most_instances) +
                           " combinations of values of variables (a bound may be missing)",
                       "more");
    }
    evaluate_let(all_let_);
    const std::vector<Cell>& before = cells(rule_.before, before_);
    if (before.empty()) return;
    const std::vector<Cell>& after = cells(rule_.after, after_);
    if (after.empty() || (rule_.where && rule_.where->evaluate(values_) == 0)) return;
    for (const Cell& first : before) {
      for (const Cell& second : after) keep(first, second);
    }
  }

  /// The cells that a pattern names, none if they do not exist: one, or one for each slice.
  const std::vector<Cell>& cells(const CellPattern& pattern, std::vector<Cell>& result) const {
    result.clear();
    std::array<std::int64_t, axis_count> at{};
    for (std::size_t axis = 0; axis < pattern.coordinates.size(); ++axis) {
      at[axis] = pattern.coordinates[axis].evaluate(values_);
      if (at[axis] < 0 || at[axis] >= sizes_[axis]) return result;
    }
    const auto repeats = static_cast<int>(sizes_[axis_count]);
    Cell cell{static_cast<int>(at[0]), static_cast<int>(at[1]), pattern.pass,
              static_cast<int>(at[2])};
    if (pattern.pass == placement::CellPass::forward)
      cell.repeat = pattern.repeat.value_or(repeats - 1);
    if (cell.repeat >= repeats) return result;
    const bool every_slice = pattern.coordinates.size() < axis_count;
    const int end = every_slice ? static_cast<int>(sizes_[2]) : cell.slice + 1;
    for (; cell.slice < end; ++cell.slice) result.push_back(cell);
    return result;
  }

  void keep(const Cell& before, const Cell& after) {
    if (before == after) {
      throw InputError("", rule_.path, "two cells",
                       to_text(before) + " before itself" + variables());
    }
    orders_.push_back({before, after});
  }

  /// " (i = 0, m = 2)"
  [[nodiscard]] std::string variables() const {
    std::string text;
    for (int place = rule_.first_variable; place < rule_.first_let; ++place) {
      text += (text.empty() ? " (" : ", ") + rule_.names[place] + " = " +
              std::to_string(values_[place]);
    }
    return text.empty() ? "" : text + ")";
  }

  void evaluate_let(const std::vector<int>& which) {
    for (const int i : which) values_[rule_.first_let + i] = rule_.let[i].evaluate(values_);
  }

  [[nodiscard]] std::int64_t checked(std::optional<std::int64_t> result) const {
    if (!result)
      throw InputError("", rule_.path, "coordinates of at most 64 bits on the way", "more");
    return *result;
  }
  [[nodiscard]] std::int64_t add(std::int64_t a, std::int64_t b) const {
    return checked(apply(Calculation::add, a, b));
  }
  [[nodiscard]] std::int64_t divide(std::int64_t a, std::int64_t b) const {
    return checked(apply(Calculation::divide, a, b));
  }

  const ParsedRule& rule_;
  std::array<std::int64_t, 4> sizes_;
  std::vector<VariableRange> ranges_;
  std::vector<std::int64_t> values_;  ///< by place
  std::vector<int> all_let_;
  std::vector<Cell> before_;  ///< kept from instance to instance for their memory
  std::vector<Cell> after_;
  std::int64_t examined_ = 0;
  std::vector<Order> orders_;
};

}  // namespace

std::vector<Order> expand(const OrderRule& rule, const Extent& extent) {
  const ParsedRule parsed = parse_rule(rule);
  check_can_exist(parsed);
  return Expansion(parsed, extent).run();
}

}  // namespace stratagem::strategies

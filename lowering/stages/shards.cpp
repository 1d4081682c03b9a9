// Finds the axes that the plan names.
#include "lowering/stages/shards.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace stratagem::lowering {

using placement::Grid;
using strategies::Keep;
using strategies::Plan;

std::vector<int> shard_axes(const Plan& plan, const Grid& grid, const placement::Layout& layout,
                            Keep::What what, Keep::Between gap) {
  using What = Keep::What;
  const auto named = [&](int axis, What which, Keep::Between when) {
    return std::ranges::count(plan.divided(which, when), grid.axes[axis].name);
  };
  std::vector<int> axes;
  for (int axis = 0; axis < static_cast<int>(grid.axes.size()); ++axis) {
    const int role = layout[axis].dim;
    const bool whole = role == placement::AxisRole::replica || role == placement::AxisRole::partial;
    if (named(axis, what, gap) > 0 && whole && grid.axes[axis].size > 1) axes.push_back(axis);
  }
  constexpr auto rest = Keep::Between::micro_batches;
  std::ranges::stable_sort(axes, std::greater<>(), [&](int axis) {
    return named(axis, What::parameters, rest) + named(axis, What::gradients, rest);
  });
  return axes;
}

std::vector<int> common(std::vector<int> axes, const std::vector<int>& others) {
  std::erase_if(axes, [&](int axis) { return std::ranges::count(others, axis) == 0; });
  return axes;
}

std::vector<int> without(std::vector<int> axes, const std::vector<int>& others) {
  std::erase_if(axes, [&](int axis) { return std::ranges::count(others, axis) > 0; });
  return axes;
}

bool is_gathered(const Plan& plan, const cost::Stack& stack, const std::vector<int>& axes) {
  const Keep* rule = plan.residency.of(Keep::What::parameters);
  if (rule == nullptr) return false;
  return !axes.empty() || (cost::rule_of<cost::ShardCollectives>(stack).of_one_rank &&
                           rule->where == Keep::Where::device);
}

bool gathers_before_first_use(const Plan& plan) {
  const Keep* rule = plan.residency.of(Keep::What::parameters, Keep::Between::iterations);
  return rule != nullptr && rule->between == Keep::Between::iterations;
}

bool kept_for_passes(const Plan& plan) {
  const auto in = [&](Keep::Between gap) { return plan.residency.of(Keep::What::parameters, gap); };
  return in(Keep::Between::passes) != in(Keep::Between::micro_batches);
}

int ahead_of(const Plan& plan) {
  for (const Keep& rule : plan.residency.rules())
    if (rule.what == Keep::What::parameters && rule.ahead) return *rule.ahead;
  return 0;
}

bool stays_whole(const Plan& plan, const model::Tensor& tensor, Bytes whole) {
  const Keep* rule = plan.residency.of(Keep::What::parameters);
  return rule != nullptr && std::round(whole / model::size_of(tensor.type)) < rule->at_least;
}

Bytes shard_bytes(const model::Tensor& tensor, Bytes whole, const Grid& grid,
                  const std::vector<int>& axes) {
  const Bytes element = model::size_of(tensor.type);
  return std::ceil(std::round(whole / element) / ranks_along(grid, axes)) * element;
}

int ranks_along(const Grid& grid, const std::vector<int>& axes) {
  int ranks = 1;
  for (const int axis : axes) ranks *= grid.axes[axis].size;
  return ranks;
}

std::string axis_names(const Grid& grid, const std::vector<int>& axes) {
  std::string names;
  for (const int axis : axes) names += (names.empty() ? "" : ", ") + grid.axes[axis].name;
  return names;
}

}  // namespace stratagem::lowering

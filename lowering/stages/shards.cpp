// Finds the axes that the plan names.
#include "lowering/stages/shards.hpp"

#include <algorithm>
#include <cmath>

namespace stratagem::lowering {

using placement::Grid;
using strategies::Keep;
using strategies::Plan;

std::vector<int> shard_axes(const Plan& plan, const Grid& grid, const placement::Layout& layout,
                            Keep::What what) {
  std::vector<int> axes;
  const std::vector<std::string>& divided = plan.divided(what);
  for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
    const bool named = std::ranges::count(divided, grid.axes[axis].name) > 0;
    const int role = layout[axis].dim;
    const bool whole = role == placement::AxisRole::replica || role == placement::AxisRole::partial;
    if (named && whole && grid.axes[axis].size > 1) axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

bool is_gathered(const Plan& plan, const cost::Stack& stack, const std::vector<int>& axes) {
  const Keep* rule = plan.residency.of(Keep::What::parameters);
  if (rule == nullptr || rule->between != Keep::Between::passes) return false;
  return !axes.empty() || (cost::rule_of<cost::ShardCollectives>(stack).of_one_rank &&
                           rule->where == Keep::Where::device);
}

bool gathers_before_first_use(const Plan& plan) {
  const Keep* rule = plan.residency.of(Keep::What::parameters);
  return rule != nullptr && rule->between == Keep::Between::iterations;
}

int ahead_of(const Plan& plan) {
  const Keep* rule = plan.residency.of(Keep::What::parameters);
  return rule == nullptr ? 0 : rule->ahead.value_or(0);
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

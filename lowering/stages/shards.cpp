// Finds the axes that the plan names.
#include "lowering/stages/shards.hpp"

#include <algorithm>
#include <cmath>

namespace stratagem::lowering {

using placement::Grid;
using strategies::Plan;

std::vector<int> shard_axes(const Plan& plan, const Grid& grid, const placement::Layout& layout,
                            strategies::WeightShards::Of what) {
  std::vector<int> axes;
  if (!plan.shards.divides(what)) return axes;
  for (std::size_t axis = 0; axis < grid.axes.size(); ++axis) {
    const bool named = std::ranges::count(plan.shards.axes, grid.axes[axis].name) > 0;
    const int role = layout[axis].dim;
    const bool whole = role == placement::AxisRole::replica || role == placement::AxisRole::partial;
    if (named && whole && grid.axes[axis].size > 1) axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

bool is_gathered(const Plan& plan, const cost::Stack& stack, const std::vector<int>& axes) {
  if (plan.shards.of != strategies::WeightShards::Of::parameters) return false;
  return !axes.empty() || (stack.shard_collectives.of_one_rank && !plan.parameters_on_host);
}

bool gathers_before_first_use(const Plan& plan) {
  const bool whole = plan.shards.of < strategies::WeightShards::Of::parameters;
  return whole && plan.shards.prefetch && !plan.parameters_on_host;
}

bool stays_whole(const Plan& plan, const model::Tensor& tensor, Bytes whole) {
  return std::round(whole / model::size_of(tensor.type)) < plan.shards.whole_below;
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

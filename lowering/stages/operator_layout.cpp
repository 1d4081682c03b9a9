// Grids from placements, layouts from annotations.
#include "lowering/stages/operator_layout.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using placement::AxisRole;
using placement::Grid;
using placement::Layout;
using strategies::Plan;

namespace {

Layout layout_of(const std::vector<model::Term>& terms, const std::vector<std::string>& split) {
  Layout layout;
  for (const std::string& dim : split) {
    layout.push_back({dim.empty() ? AxisRole::replica
                                  : std::max(model::dimension_of(terms, dim), AxisRole::replica)});
  }
  return layout;
}

}  // namespace

std::optional<Grid> grid_of(const Plan& plan, const std::vector<int>& segments, int copy) {
  std::optional<Grid> grid;
  for (const int segment : segments) {
    for (const model::OpId op : plan.graph().segments[segment].forward) {
      const Plan::Placement& placement = plan.placement(op);
      if (!placement.listed.empty() || !divides_evenly(plan, op)) return std::nullopt;
      Grid here{placement.first_devices[copy], placement.axes, {}};
      std::ranges::sort(here.axes, std::greater<>(), &placement::Axis::stride);
      if (grid && *grid != here) return std::nullopt;
      grid = std::move(here);
    }
  }
  return grid ? grid : Grid{};
}

std::vector<std::string> split_along(const Plan& plan, const Grid& grid, model::OpId op) {
  const model::OpId forward = plan.graph().operators[op].forward;
  const Plan::Placement& placement = plan.placement(forward >= 0 ? forward : op);
  std::vector<std::string> split;
  for (const placement::Axis& axis : grid.axes) {
    const auto found = std::ranges::find(placement.axes, axis);
    expects(found != placement.axes.end(), "an operator stands on every axis of its grid");
    split.push_back(axis.size > 1 ? placement.dims[found - placement.axes.begin()] : "");
  }
  return split;
}

Layout input_layout(const model::Operator& op, std::size_t i,
                    const std::vector<std::string>& split) {
  return layout_of(op.annotation.inputs[i], split);
}

Layout output_layout(const model::Operator& op, std::size_t i,
                     const std::vector<std::string>& split) {
  Layout layout = layout_of(op.annotation.outputs[i], split);
  for (std::size_t axis = 0; axis < split.size(); ++axis) {
    if (model::is_reduction(op.annotation, split[axis])) layout[axis] = {AxisRole::partial};
  }
  return layout;
}

}  // namespace stratagem::lowering

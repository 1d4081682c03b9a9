// Makes grids from placements, layouts from annotations, and communicators from grids.
#include "strategies/lower/grid.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::strategies {
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
      std::ranges::sort(here.axes, std::greater<>(), &Axis::stride);
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
  for (const Axis& axis : grid.axes) {
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

std::optional<Layout> divided(Layout layout, std::size_t axis, const model::Tensor& tensor,
                              const Grid& grid) {
  for (int dim = 0; dim < static_cast<int>(tensor.shape.size()); ++dim) {
    layout[axis] = {dim};
    if (local_elements(layout, tensor.shape, grid.sizes()) >= 0) return layout;
  }
  return std::nullopt;
}

std::vector<std::int64_t> local_shape(const model::Tensor& tensor, const Layout& layout,
                                      const Grid& grid) {
  if (local_elements(layout, tensor.shape, grid.sizes()) < 0) {
    throw InputError("", "", "tensor " + tensor.name + " to divide into equal parts along its axes",
                     "");
  }
  // All parts are equal: the first device's mask tells their shape.
  const Mask mask =
      mask_at(layout, tensor.shape, grid.sizes(), std::vector<int>(grid.axes.size(), 0));
  std::vector<std::int64_t> shape;
  for (const Range& range : mask.ranges) shape.push_back(range.end - range.begin);
  return shape;
}

Bytes local_bytes(const model::Tensor& tensor, const Layout& layout, const Grid& grid) {
  double elements = 1;
  for (const std::int64_t size : local_shape(tensor, layout, grid))
    elements *= static_cast<double>(size);
  return elements * model::size_of(tensor.type);
}

Groups::Groups(Program& program, std::vector<Grid> grids) : program_(program) {
  for (Grid& grid : grids) {
    if (std::ranges::find(grids_, grid) != grids_.end()) continue;
    grids_.push_back(std::move(grid));
  }
  // A family is a set of grids with equal axes of which no two overlap.
  std::vector<std::pair<const std::vector<Axis>*, std::set<int>>> families;
  for (const Grid& grid : grids_) {
    const std::vector<int> devices = grid.devices();
    std::size_t family = 0;
    for (; family < families.size(); ++family) {
      const auto& [axes, taken] = families[family];
      const auto free = [&taken = taken](int device) { return !taken.contains(device); };
      if (*axes == grid.axes && std::ranges::all_of(devices, free)) break;
    }
    if (family == families.size()) families.emplace_back(&grid.axes, std::set<int>{});
    families[family].second.insert(devices.begin(), devices.end());
    family_.push_back(static_cast<int>(family));
  }
}

int Groups::family(const Grid& grid) const {
  const auto found = std::ranges::find(grids_, grid);
  expects(found != grids_.end(), "groups are asked for on the grids of stages");
  return family_[found - grids_.begin()];
}

int Groups::new_group() {
  for (Device& device : program_.devices) device.groups.push_back(-1);
  return count_++;
}

void Groups::bind(int group, const std::vector<int>& ranks) {
  const auto id = static_cast<int>(program_.communicators.size());
  program_.communicators.push_back({ranks});
  for (const int rank : ranks) program_.devices[rank].groups[group] = id;
}

void Groups::bind_along(int group, const Grid& grid, const std::vector<int>& axes) {
  std::map<std::vector<int>, std::vector<int>> members;  // by the coordinates along the other axes
  for (int i = 0; i < grid.count(); ++i) {
    std::vector<int> others = grid.coordinates(i);
    const int device = grid.device(others);
    for (const int axis : axes) others[axis] = 0;
    members[others].push_back(device);
  }
  for (const auto& [others, ranks] : members) bind(group, ranks);
}

int Groups::along(const Grid& grid, const std::vector<int>& axes, int purpose) {
  const int wanted = family(grid);
  std::vector<int> key = {0, purpose, wanted};
  key.insert(key.end(), axes.begin(), axes.end());
  const auto [found, fresh] = known_.emplace(key, count_);
  if (!fresh) return found->second;
  const int group = new_group();
  for (std::size_t g = 0; g < grids_.size(); ++g) {
    if (family_[g] == wanted) bind_along(group, grids_[g], axes);
  }
  return group;
}

int Groups::of(const std::vector<std::vector<int>>& ranks, int purpose) {
  std::vector<int> key = {2, purpose};
  for (const std::vector<int>& one : ranks) {
    key.push_back(static_cast<int>(one.size()));
    key.insert(key.end(), one.begin(), one.end());
  }
  const auto [found, fresh] = known_.emplace(key, count_);
  if (!fresh) return found->second;
  const int group = new_group();
  for (const std::vector<int>& one : ranks) bind(group, one);
  return group;
}

int Groups::alone() {
  std::vector<std::vector<int>> ranks;
  for (std::size_t device = 0; device < program_.devices.size(); ++device)
    ranks.push_back({static_cast<int>(device)});
  return of(ranks, -5);
}

int Groups::across(const std::vector<Grid>& grids, int purpose) {
  std::vector<int> key = {1, purpose};
  for (const Grid& grid : grids) key.push_back(grid.first_device);
  const auto [found, fresh] = known_.emplace(key, count_);
  if (!fresh) return found->second;
  const int group = new_group();
  for (int i = 0; i < grids.front().count(); ++i) {
    std::vector<int> ranks;
    ranks.reserve(grids.size());
    for (const Grid& grid : grids) ranks.push_back(grid.device(grid.coordinates(i)));
    bind(group, ranks);
  }
  return group;
}

}  // namespace stratagem::strategies

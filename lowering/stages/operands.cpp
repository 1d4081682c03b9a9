// Grids from placements, layouts from annotations; masks where a stage's devices are listed.
#include "lowering/stages/operands.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using placement::AxisRole;
using placement::Distribution;
using placement::Grid;
using placement::Layout;
using placement::Mask;
using strategies::Plan;

namespace {

Layout layout_of(const std::vector<model::Term>& terms, const std::vector<SplitAlong>& split) {
  Layout layout;
  for (const SplitAlong& along : split) {
    const int dim = along.dim.empty() ? -1 : model::dimension_of(terms, along.dim);
    layout.push_back({std::max(dim, AxisRole::replica)});
  }
  for (int axis = 0; axis < static_cast<int>(split.size()); ++axis) {
    AxisRole& role = layout[axis];
    role.inner = split[axis].inner && role.dim >= 0 && divided_after(layout, axis, role.dim);
  }
  return layout;
}

/// What every op-trans made of one operator of one copy: parts in row-major order of the axes.
struct OperatorParts {
  std::vector<int> devices;            ///< by part
  std::vector<int> sizes;              ///< of the axes
  std::vector<SplitAlong> split;       ///< what they divide
  std::vector<std::int64_t> elements;  ///< of the dimension, as the forward operator sees it
};

/// The axes of a placement in the order in which its parts are counted.
std::vector<std::size_t> order_of_axes(const Plan::Placement& placement) {
  std::vector<std::size_t> order(placement.axes.size());
  std::iota(order.begin(), order.end(), 0);
  if (placement.listed.empty())
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t axis) { return placement.axes[axis].stride; });
  return order;
}

void check_devices(const OperatorParts& parts, int count, const std::string& name) {
  const std::string where = "operator " + name + " to have ";
  if (static_cast<int>(parts.devices.size()) != count) {
    throw InputError("", "", where + "a device for each of its " + std::to_string(count) + " parts",
                     std::to_string(parts.devices.size()) + " devices");
  }
  std::set<int> taken;
  for (std::size_t part = 0; part < parts.devices.size(); ++part) {
    const int device = parts.devices[part];
    if (device < 0) {
      throw InputError("", "", where + "every part on a device",
                       "part " + std::to_string(part) + " on device " + std::to_string(device));
    }
    if (!taken.insert(device).second) {
      throw InputError("", "", where + "one part of an operator on each device",
                       "two on device " + std::to_string(device));
    }
  }
}

/// Of a backward operator the parts of its forward operator. Where the plan gives no list, axes are
/// ordered from the largest stride to the smallest, as in a grid. Throws InputError where a part
/// has no device, or two have one.
OperatorParts parts_of(const Plan& plan, model::OpId op, int copy) {
  const model::OpId id = forward_of(plan.graph(), op);
  const Plan::Placement& placement = plan.placement(id);
  OperatorParts parts;
  Grid grid{placement.first_devices[copy], {}, {}};
  for (const std::size_t axis : order_of_axes(placement)) {
    grid.axes.push_back(placement.axes[axis]);
    parts.split.push_back({placement.dims[axis], placement.inner[axis]});
    parts.elements.push_back(strategies::size_of_dimension(plan.graph(), plan.graph().operators[id],
                                                           placement.dims[axis]));
  }
  parts.sizes = grid.sizes();
  if (!placement.listed.empty()) parts.devices = placement.listed[copy];
  for (int part = 0; placement.listed.empty() && part < grid.count(); ++part)
    parts.devices.push_back(grid.device(grid.coordinates(part)));
  check_devices(parts, grid.count(), plan.graph().operators[id].name);
  return parts;
}

/// Divides a dimension as far as the identifier has elements: of a fused dimension whole groups.
Mask divide(const Mask& mask, const model::Tensor& tensor, int dim, std::int64_t elements, int i,
            int n, bool uneven, const std::string& name) {
  const placement::Range range = mask.ranges[dim];
  const std::int64_t size = tensor.shape[dim];
  const std::int64_t unit = elements > 0 && size % elements == 0 ? size / elements : 1;
  if (!uneven && (range.end - range.begin) % n != 0) {
    throw InputError("", "",
                     "tensor " + tensor.name + " of operator " + name + " to divide into " +
                         std::to_string(n) + " equal parts",
                     std::to_string(range.end - range.begin));
  }
  return split_unevenly(mask, static_cast<std::size_t>(dim), i, n, uneven ? unit : 1);
}

std::string text_of(const SplitAlong& along) { return along.dim + (along.inner ? " inner" : ""); }

/// Axes whose parts are of the parts of others stand last.
std::vector<std::size_t> outer_first(const std::vector<SplitAlong>& split) {
  std::vector<std::size_t> order(split.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t axis) { return split[axis].inner; });
  return order;
}

/// What a part sees of the i-th input or output. Parts of a reduction leave parts of the value.
/// Throws InputError where the tensor has to divide evenly and does not.
Mask mask_of(const Plan& plan, model::OpId id, std::size_t i, const OperatorParts& parts, int part,
             bool output) {
  const model::Operator& op = plan.graph().operators[id];
  const model::Tensor& tensor = plan.graph().tensors[output ? op.outputs[i] : op.inputs[i]];
  const auto& terms = output ? op.annotation->outputs[i] : op.annotation->inputs[i];
  const bool uneven = !divides_evenly(plan, forward_of(plan.graph(), id));
  const std::vector<int> at = placement::coordinates_in(parts.sizes, part);
  Mask mask = placement::whole(tensor.shape);
  for (const std::size_t axis : outer_first(parts.split)) {
    const std::string& split = parts.split[axis].dim;
    if (split.empty()) continue;
    const int dim = model::dimension_of(terms, split);
    if (output && model::is_reduction(*op.annotation, split)) {
      mask = split_value(mask, at[axis], parts.sizes[axis]);
    } else if (dim >= 0) {
      mask = divide(mask, tensor, dim, parts.elements[axis], at[axis], parts.sizes[axis], uneven,
                    op.name);
    }
  }
  return mask;
}

Operands on_grid(const Plan& plan, const Grid& grid, model::OpId id) {
  const model::Operator& op = plan.graph().operators[id];
  const std::vector<SplitAlong> split = split_along(plan, grid, id);
  Operands operands;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    operands.reads.push_back({{grid.first_device, {input_layout(op, i, split)}}});
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    operands.leaves.push_back({{grid.first_device, {output_layout(op, i, split)}}});
  return operands;
}

Operands on_list(const Plan& plan, int copy, model::OpId id) {
  const model::Operator& op = plan.graph().operators[id];
  const OperatorParts parts = parts_of(plan, id, copy);
  const auto distributions = [&](std::size_t count, bool output) {
    std::vector<Distribution> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (int part = 0; part < std::ssize(parts.devices); ++part)
        result[i].push_back(
            {parts.devices[part], {.mask = mask_of(plan, id, i, parts, part, output)}});
    }
    return result;
  };
  return {distributions(op.inputs.size(), false), distributions(op.outputs.size(), true)};
}

Distribution whole_everywhere(const model::Tensor& tensor, const Grid& grid) {
  if (grid.listed.empty()) return {{grid.first_device, {placement::Layout(grid.axes.size())}}};
  Distribution all;
  for (const int device : grid.listed)
    all.push_back({device, {.mask = placement::whole(tensor.shape)}});
  return all;
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

std::vector<SplitAlong> split_along(const Plan& plan, const Grid& grid, model::OpId op) {
  const Plan::Placement& placement = plan.placement(forward_of(plan.graph(), op));
  std::vector<SplitAlong> split;
  for (const placement::Axis& axis : grid.axes) {
    const auto found = std::ranges::find(placement.axes, axis);
    expects(found != placement.axes.end(), "an operator stands on every axis of its grid");
    const auto i = found - placement.axes.begin();
    split.push_back(axis.size > 1 ? SplitAlong{placement.dims[i], placement.inner[i]}
                                  : SplitAlong{});
  }
  return split;
}

Layout input_layout(const model::Operator& op, std::size_t i,
                    const std::vector<SplitAlong>& split) {
  return layout_of(op.annotation->inputs[i], split);
}

Layout output_layout(const model::Operator& op, std::size_t i,
                     const std::vector<SplitAlong>& split) {
  Layout layout = layout_of(op.annotation->outputs[i], split);
  for (std::size_t axis = 0; axis < split.size(); ++axis) {
    if (model::is_reduction(*op.annotation, split[axis].dim)) layout[axis] = {AxisRole::partial};
  }
  return layout;
}

std::vector<int> devices_of(const Plan& plan, const std::vector<int>& segments, int copy) {
  std::map<int, int> image;  // by device of copy 0
  std::set<int> images;
  for (const int segment : segments) {
    for (const model::OpId op : plan.graph().segments[segment].forward) {
      const OperatorParts first = parts_of(plan, op, 0);
      const OperatorParts here = parts_of(plan, op, copy);
      for (std::size_t part = 0; part < first.devices.size(); ++part) {
        const auto [known, fresh] = image.emplace(first.devices[part], here.devices[part]);
        const bool another =
            fresh ? !images.insert(known->second).second : known->second != here.devices[part];
        if (!another) continue;
        throw InputError("", "",
                         "operator " + plan.graph().operators[op].name +
                             " to share devices with the same operators on every copy",
                         "another device " + std::to_string(here.devices[part]) + " on copy " +
                             std::to_string(copy));
      }
    }
  }
  std::vector<int> devices;
  for (const auto& [of_first, device] : image) devices.push_back(device);
  return devices;
}

Operands operands_of(const Plan& plan, const Grid& grid, int copy, model::OpId op) {
  return grid.listed.empty() ? on_grid(plan, grid, op) : on_list(plan, copy, op);
}

Distribution first_reading(const Plan& plan, const Grid& grid, int copy,
                           const std::vector<model::OpId>& ops, model::TensorId tensor) {
  for (const model::OpId id : ops) {
    const std::vector<model::TensorId>& inputs = plan.graph().operators[id].inputs;
    const auto found = std::ranges::find(inputs, tensor);
    if (found != inputs.end())
      return operands_of(plan, grid, copy, id).reads[found - inputs.begin()];
  }
  return whole_everywhere(plan.graph().tensors[tensor], grid);
}

std::string division_key(const Plan& plan, const Grid& grid, model::OpId op) {
  std::string key;
  if (grid.listed.empty()) {
    for (const SplitAlong& along : split_along(plan, grid, op))
      key.append(",").append(text_of(along));
    return key;
  }
  for (int copy = 0; copy < plan.copies_of(op); ++copy) {
    const OperatorParts parts = parts_of(plan, op, copy);
    key += "[";
    for (const int device : parts.devices) key += std::to_string(device) + " ";
    for (std::size_t axis = 0; axis < parts.sizes.size(); ++axis)
      key += "/" + std::to_string(parts.sizes[axis]) + text_of(parts.split[axis]);
    key += "]";
  }
  return key;
}

}  // namespace stratagem::lowering

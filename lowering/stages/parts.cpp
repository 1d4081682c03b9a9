// Turns placements into lists of devices, and annotations into masks.
#include "lowering/stages/parts.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using placement::Mask;
using strategies::Plan;

namespace {

std::vector<int> coordinates(const OperatorParts& parts, std::size_t part) {
  std::vector<int> at(parts.sizes.size());
  for (std::size_t axis = at.size(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(parts.sizes[axis]);
    at[axis] = static_cast<int>(part % size);
    part /= size;
  }
  return at;
}

/// The axes of a placement in the order in which its parts are counted.
std::vector<std::size_t> order_of_axes(const Plan::Placement& placement) {
  std::vector<std::size_t> order(placement.axes.size());
  std::iota(order.begin(), order.end(), 0);
  if (placement.listed.empty())
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t axis) { return placement.axes[axis].stride; });
  return order;
}

std::vector<int> affine_devices(const Plan::Placement& placement, const OperatorParts& parts,
                                const std::vector<std::size_t>& order, int count, int copy) {
  std::vector<int> devices;
  for (int part = 0; part < count; ++part) {
    const std::vector<int> at = coordinates(parts, static_cast<std::size_t>(part));
    int device = placement.first_devices[copy];
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      device += at[axis] * placement.axes[order[axis]].stride;
    devices.push_back(device);
  }
  return devices;
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

Mask mask_of(const Plan& plan, const model::Operator& op, model::TensorId id,
             const std::vector<model::Term>& terms, const OperatorParts& parts, std::size_t part,
             bool output) {
  const model::Tensor& tensor = plan.graph().tensors[id];
  const model::OpId self = static_cast<model::OpId>(&op - plan.graph().operators.data());
  const bool uneven = !divides_evenly(plan, op.forward >= 0 ? op.forward : self);
  const std::vector<int> at = coordinates(parts, part);
  Mask mask = placement::whole(tensor.shape);
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    if (parts.dims[axis].empty()) continue;
    const int dim = model::dimension_of(terms, parts.dims[axis]);
    if (output && model::is_reduction(op.annotation, parts.dims[axis])) {
      mask = split_value(mask, at[axis], parts.sizes[axis]);
    } else if (dim >= 0) {
      mask = divide(mask, tensor, dim, parts.elements[axis], at[axis], parts.sizes[axis], uneven,
                    op.name);
    }
  }
  return mask;
}

}  // namespace

OperatorParts parts_of(const Plan& plan, model::OpId op, int copy) {
  const model::OpId forward = plan.graph().operators[op].forward;
  const model::OpId id = forward >= 0 ? forward : op;
  const Plan::Placement& placement = plan.placement(id);
  const std::vector<std::size_t> order = order_of_axes(placement);
  OperatorParts parts;
  int count = 1;
  for (const std::size_t axis : order) {
    parts.sizes.push_back(placement.axes[axis].size);
    parts.dims.push_back(placement.dims[axis]);
    parts.elements.push_back(strategies::size_of_dimension(plan.graph(), plan.graph().operators[id],
                                                           placement.dims[axis]));
    count *= placement.axes[axis].size;
  }
  parts.devices = placement.listed.empty() ? affine_devices(placement, parts, order, count, copy)
                                           : placement.listed[copy];
  check_devices(parts, count, plan.graph().operators[id].name);
  return parts;
}

Mask input_mask(const Plan& plan, model::OpId op, std::size_t i, const OperatorParts& parts,
                std::size_t part) {
  const model::Operator& o = plan.graph().operators[op];
  return mask_of(plan, o, o.inputs[i], o.annotation.inputs[i], parts, part, false);
}

Mask output_mask(const Plan& plan, model::OpId op, std::size_t i, const OperatorParts& parts,
                 std::size_t part) {
  const model::Operator& o = plan.graph().operators[op];
  return mask_of(plan, o, o.outputs[i], o.annotation.outputs[i], parts, part, true);
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

std::string key_of(const OperatorParts& parts) {
  std::string key = "[";
  for (const int device : parts.devices) key += std::to_string(device) + " ";
  for (std::size_t axis = 0; axis < parts.sizes.size(); ++axis)
    key += "/" + std::to_string(parts.sizes[axis]) + parts.dims[axis];
  return key + "]";
}

}  // namespace stratagem::lowering

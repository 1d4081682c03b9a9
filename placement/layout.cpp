// Shortest paths over layouts.
#include "placement/layout.hpp"

#include <algorithm>
#include <queue>
#include <tuple>

#include "base/input_error.hpp"

namespace stratagem::placement {
namespace {

/// Of a step that finds so many elements on each of its n devices.
double volume_of(const Conversion& step, double elements, double n) {
  return step.communicates() ? volume(step.collective(), elements, n) : 0;
}

int group_size(const Conversion& step, const std::vector<int>& axis_sizes) {
  int n = 1;
  for (const int axis : step.axes) n *= axis_sizes[axis];
  return n;
}

/// Only the innermost of the axes that divide a dimension may stop dividing it, and what begins to
/// becomes the innermost.
bool keeps_order(const Layout& layout, const Conversion& step) {
  for (int axis = 0; axis < static_cast<int>(layout.size()); ++axis) {
    const AxisRole role = layout[axis];
    if (role.dim < 0 || std::ranges::binary_search(step.axes, axis)) continue;
    const auto is_within = [&](const AxisRole& other) {
      return role.dim == other.dim && (role.inner || (axis > step.axes.front() && !other.inner));
    };
    if (is_within(step.from) || is_within(step.to)) return false;
  }
  return true;
}

/// Parts do not become partial values in one step.
bool possible(const Layout& layout, const Conversion& step) {
  const bool from_replicas = step.from.dim == AxisRole::replica;
  return step.from != step.to && (step.to.dim != AxisRole::partial || from_replicas) &&
         keeps_order(layout, step);
}

/// The axes of a set of bits if they all have one role, else none.
std::vector<int> axes_of_one_role(const Layout& layout, unsigned bits) {
  std::vector<int> axes;
  for (int axis = 0; axis < static_cast<int>(layout.size()); ++axis) {
    if ((bits >> axis & 1U) == 0) continue;
    if (!axes.empty() && layout[axis] != layout[axes.front()]) return {};
    axes.push_back(axis);
  }
  return axes;
}

/// All steps from a layout to one that comes out even.
std::vector<Conversion> steps_from(const Layout& layout, const std::vector<std::int64_t>& shape,
                                   const std::vector<int>& axis_sizes) {
  std::vector<Conversion> steps;
  for (unsigned bits = 1; bits < 1U << layout.size(); ++bits) {
    const std::vector<int> axes = axes_of_one_role(layout, bits);
    if (axes.empty()) continue;
    for (int dim = AxisRole::partial; dim < static_cast<int>(shape.size()); ++dim) {
      const bool inner = axes.size() == 1 && dim >= 0 && divided_after(layout, axes[0], dim);
      Conversion step{axes, layout[axes.front()], {dim, inner}};
      if (!possible(layout, step)) continue;
      if (dim >= 0 && local_elements(after(layout, step), shape, axis_sizes) < 0) continue;
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

/// The one step that changes all that differs, if surely no sequence is cheaper: every device
/// receives just what it lacks, or, for partial values, no replica and no other partial value could
/// take over some of the work.
std::optional<Conversion> direct_step(const Layout& from, const Layout& to) {
  Conversion step;
  bool shareable = false;
  for (int axis = 0; axis < static_cast<int>(from.size()); ++axis) {
    if (from[axis] == to[axis]) {
      shareable |= from[axis].dim < 0;
      continue;
    }
    if (step.axes.empty()) std::tie(step.from, step.to) = std::pair(from[axis], to[axis]);
    if (from[axis] != step.from || to[axis] != step.to) return std::nullopt;
    step.axes.push_back(axis);
  }
  if (step.from.dim == AxisRole::partial && shareable) return std::nullopt;
  return possible(from, step) ? std::optional(step) : std::nullopt;
}

}  // namespace

double volume(cost::CollectiveKind kind, double elements, double n) {
  switch (kind) {
    case cost::CollectiveKind::send:
      return elements;
    case cost::CollectiveKind::broadcast:
    case cost::CollectiveKind::all_gather:
      return (n - 1) * elements;
    case cost::CollectiveKind::all_reduce:
      return 2 * (n - 1) * elements / n;
    default:
      return (n - 1) * elements / n;
  }
}

bool divided_after(const Layout& layout, int axis, int dim) {
  return std::ranges::any_of(layout.begin() + axis + 1, layout.end(),
                             [dim](const AxisRole& role) { return role.dim == dim; });
}

Mask mask_at(const Layout& layout, const std::vector<std::int64_t>& shape,
             const std::vector<int>& axis_sizes, const std::vector<int>& coordinates) {
  Mask mask = whole(shape);
  for (const bool inner : {false, true}) {
    for (std::size_t axis = 0; axis < layout.size(); ++axis) {
      const int dim = layout[axis].dim;
      if (layout[axis].inner != inner) continue;
      if (dim >= 0) {
        mask = split(mask, dim, coordinates[axis], axis_sizes[axis]);
      } else if (dim == AxisRole::partial) {
        mask = split_value(mask, coordinates[axis], axis_sizes[axis]);
      }
    }
  }
  return mask;
}

std::int64_t local_elements(const Layout& layout, const std::vector<std::int64_t>& shape,
                            const std::vector<int>& axis_sizes) {
  std::vector<std::int64_t> local = shape;
  for (std::size_t axis = 0; axis < layout.size(); ++axis) {
    if (layout[axis].dim < 0) continue;
    std::int64_t& size = local[layout[axis].dim];
    if (size % axis_sizes[axis] != 0) return -1;
    size /= axis_sizes[axis];
  }
  std::int64_t elements = 1;
  for (const std::int64_t size : local) elements *= size;
  return elements;
}

cost::CollectiveKind Conversion::collective() const {
  expects(communicates(), "a conversion from replicas needs no collective");
  if (from.dim == AxisRole::partial) {
    return to.dim == AxisRole::replica ? cost::CollectiveKind::all_reduce
                                       : cost::CollectiveKind::reduce_scatter;
  }
  return to.dim >= 0 ? cost::CollectiveKind::all_to_all : cost::CollectiveKind::all_gather;
}

Layout after(Layout layout, const Conversion& step) {
  for (const int axis : step.axes) layout[axis] = step.to;
  return layout;
}

std::vector<Conversion> convert(const Layout& from, const Layout& to,
                                const std::vector<std::int64_t>& shape,
                                const std::vector<int>& axis_sizes) {
  if (from == to) return {};
  expects(local_elements(to, shape, axis_sizes) >= 0, "a layout is wanted that comes out even");
  if (const auto step = direct_step(from, to)) return {*step};
  return path_to(to, convert_from({{from, 0}}, shape, axis_sizes, to)).second;
}

double conversion_cost(const std::vector<Conversion>& steps, const Layout& from,
                       const std::vector<std::int64_t>& shape, const std::vector<int>& axis_sizes) {
  double cost = 0;
  Layout layout = from;
  for (const Conversion& step : steps) {
    const auto elements = static_cast<double>(local_elements(layout, shape, axis_sizes));
    cost += volume_of(step, elements, group_size(step, axis_sizes)) + 1;
    layout = after(std::move(layout), step);
  }
  return cost;
}

Arrivals convert_from(const std::map<Layout, double>& starts,
                      const std::vector<std::int64_t>& shape, const std::vector<int>& axis_sizes,
                      const std::optional<Layout>& until) {
  // Dijkstra; among equal costs the layout that was entered first leaves first.
  Arrivals arrivals;
  std::vector<Layout> entered;
  using Entry = std::pair<double, std::size_t>;  // cost, index in `entered`
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  const auto enter = [&](Layout layout, Arrival arrival) {
    const double cost = arrival.cost;
    const auto [known, fresh] = arrivals.try_emplace(layout, std::move(arrival));
    if (!fresh && known->second.cost <= cost) return;
    if (!fresh) known->second = std::move(arrival);
    open.emplace(cost, entered.size());
    entered.push_back(std::move(layout));
  };
  for (const auto& [layout, cost] : starts) enter(layout, {.cost = cost});
  while (!open.empty()) {
    const auto [cost, index] = open.top();
    open.pop();
    const Layout layout = entered[index];
    if (layout == until) break;
    if (arrivals.at(layout).cost < cost) continue;
    const auto elements = static_cast<double>(local_elements(layout, shape, axis_sizes));
    for (const Conversion& step : steps_from(layout, shape, axis_sizes)) {
      const double further = cost + volume_of(step, elements, group_size(step, axis_sizes)) + 1;
      enter(after(layout, step), {further, layout, step});
    }
  }
  return arrivals;
}

std::pair<Layout, std::vector<Conversion>> path_to(const Layout& layout, const Arrivals& arrivals) {
  std::vector<Conversion> steps;
  auto at = arrivals.find(layout);
  expects(at != arrivals.end(), "every layout can be reached through replicas");
  while (!at->second.step.axes.empty()) {
    steps.push_back(at->second.step);
    at = arrivals.find(at->second.before);
  }
  std::ranges::reverse(steps);
  return {at->first, std::move(steps)};
}

}  // namespace stratagem::placement

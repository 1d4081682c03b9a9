// Shortest paths over layouts.
#include "strategies/layout.hpp"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

double volume(const Conversion& step, double elements, double n) {
  if (!step.communicates()) return 0;
  switch (step.collective()) {
    case cost::CollectiveKind::all_reduce:
      return 2 * (n - 1) * elements / n;
    case cost::CollectiveKind::all_gather:
      return (n - 1) * elements;
    default:
      return (n - 1) * elements / n;
  }
}

/// A division of one dimension by two axes must stay outer axis first: only the innermost of the
/// axes that divide a dimension may stop dividing it, and only an axis inner to all of those may
/// begin to.
bool keeps_order(const Layout& layout, const Conversion& step) {
  for (std::size_t axis = static_cast<std::size_t>(step.axis) + 1; axis < layout.size(); ++axis) {
    const int dim = layout[axis].dim;
    if (dim >= 0 && (dim == step.from.dim || dim == step.to.dim)) return false;
  }
  return true;
}

struct Visit {
  double cost = 0;
  std::vector<Conversion> path;
};

}  // namespace

Mask mask_at(const Layout& layout, const std::vector<std::int64_t>& shape,
             const std::vector<int>& axis_sizes, const std::vector<int>& coordinates) {
  Mask mask = whole(shape);
  for (std::size_t axis = 0; axis < layout.size(); ++axis) {
    const int dim = layout[axis].dim;
    if (dim >= 0) {
      mask = split(mask, dim, coordinates[axis], axis_sizes[axis]);
    } else if (dim == AxisRole::partial) {
      mask = split_value(mask, coordinates[axis], axis_sizes[axis]);
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

std::vector<Conversion> convert(const Layout& from, const Layout& to,
                                const std::vector<std::int64_t>& shape,
                                const std::vector<int>& axis_sizes) {
  // Dijkstra; layouts of few axes, so paths are stored whole and ties are broken by insertion
  // order.
  using Entry = std::pair<double, std::size_t>;
  std::vector<std::pair<Layout, Visit>> found = {{from, {}}};
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.emplace(0, 0);
  std::map<Layout, double> settled;
  while (!open.empty()) {
    const auto [cost, index] = open.top();
    open.pop();
    const auto [layout, visit] = found[index];
    if (layout == to) return visit.path;
    if (!settled.emplace(layout, cost).second) continue;
    const auto elements = static_cast<double>(local_elements(layout, shape, axis_sizes));
    for (std::size_t axis = 0; axis < layout.size(); ++axis) {
      for (int dim = AxisRole::partial; dim < static_cast<int>(shape.size()); ++dim) {
        const Conversion step{static_cast<int>(axis), layout[axis], {dim}};
        const bool to_partial_from_parts =
            dim == AxisRole::partial && step.from.dim != AxisRole::replica;
        if (dim == step.from.dim || to_partial_from_parts || !keeps_order(layout, step)) continue;
        Layout next = layout;
        next[axis] = {dim};
        if (local_elements(next, shape, axis_sizes) < 0) continue;
        Visit further{cost + volume(step, elements, axis_sizes[axis]) + 1, visit.path};
        further.path.push_back(step);
        open.emplace(further.cost, found.size());
        found.emplace_back(std::move(next), std::move(further));
      }
    }
  }
  throw BrokenPromise("every layout can be reached through replicas");
}

double conversion_cost(const std::vector<Conversion>& steps, const Layout& from,
                       const std::vector<std::int64_t>& shape, const std::vector<int>& axis_sizes) {
  double cost = 0;
  Layout layout = from;
  for (const Conversion& step : steps) {
    const auto elements = static_cast<double>(local_elements(layout, shape, axis_sizes));
    cost += volume(step, elements, axis_sizes[step.axis]) + 1;
    layout[step.axis] = step.to;
  }
  return cost;
}

}  // namespace stratagem::strategies

// How a tensor lies over a grid of devices, and the cheapest collectives that turn one layout into
// another.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cost/collective_kind.hpp"
#include "placement/mask.hpp"

namespace stratagem::placement {

/// What one axis of a device grid does to a tensor: its devices hold the same (R), partial values
/// (V), or parts of one dimension (D).
struct AxisRole {
  static constexpr int replica = -1;
  static constexpr int partial = -2;
  int dim = replica;   ///< a dimension >= 0, or one of the two above
  bool inner = false;  ///< parts within those of all later axes that divide the dimension, too
  friend auto operator<=>(const AxisRole&, const AxisRole&) = default;
};

/// One role per axis of the grid. Where several axes divide one dimension, the earlier axis is the
/// outer one; but one of them may be `inner`, which is then the innermost. No axis is `inner` that
/// is the last to divide its dimension, so that equal distributions are equal layouts.
using Layout = std::vector<AxisRole>;

/// Does an axis after this one divide the dimension?
bool divided_after(const Layout&, int axis, int dim);

/// The mask that the device at `coordinates` sees.
Mask mask_at(const Layout&, const std::vector<std::int64_t>& shape,
             const std::vector<int>& axis_sizes, const std::vector<int>& coordinates);

/// Elements that every device holds; -1 if an axis does not divide its dimension.
std::int64_t local_elements(const Layout&, const std::vector<std::int64_t>& shape,
                            const std::vector<int>& axis_sizes);

/// Elements that a collective of n devices moves, each of which had so many before: send N,
/// broadcast and all_gather (n-1)N, all_reduce 2(n-1)N/n, reduce_scatter and all_to_all (n-1)N/n
/// (of collectives what each device sends). Source: nnScaler, the adapters' `volume`.
double volume(cost::CollectiveKind kind, double elements, double n);

/// One step of a conversion: along all of `axes` (ascending) at once, `from` becomes `to`. The
/// devices that differ only along these axes are its group. Chunks (R to D) and zero-filling (R to
/// V) cost nothing and are not collectives.
struct Conversion {
  std::vector<int> axes;
  AxisRole from;
  AxisRole to;
  [[nodiscard]] bool communicates() const { return from.dim != AxisRole::replica; }
  /// V to R all_reduce, V to D reduce_scatter, D to R all_gather, D to D' all_to_all. Expects
  /// communicates().
  [[nodiscard]] cost::CollectiveKind collective() const;
};

/// The layout after a step.
Layout after(Layout layout, const Conversion& step);

/// The cheapest sequence of conversions, by the volumes of nnScaler's layout graph, plus 1 a step.
/// Among equals the first found in the order of axes wins. Every axis moves as a whole: pass prime
/// factors as axes to search all layouts. Expects `to` to come out even. Source: Lin et al.,
/// nnScaler, OSDI 2024, section 4 (materialisation of data dependencies).
std::vector<Conversion> convert(const Layout& from, const Layout& to,
                                const std::vector<std::int64_t>& shape,
                                const std::vector<int>& axis_sizes);

/// The cost of `convert`'s answer in that measure.
double conversion_cost(const std::vector<Conversion>&, const Layout& from,
                       const std::vector<std::int64_t>& shape, const std::vector<int>& axis_sizes);

/// The last step of a cheapest path to a layout. A step without axes: the path begins there.
struct Arrival {
  double cost = 0;
  Layout before;
  Conversion step;
};
using Arrivals = std::map<Layout, Arrival>;

/// The cheapest paths to all layouts, each from whichever of `starts` (layout, cost paid so far) is
/// best for it. With `until`, the search ends there, and only that layout's path is sure.
Arrivals convert_from(const std::map<Layout, double>& starts,
                      const std::vector<std::int64_t>& shape, const std::vector<int>& axis_sizes,
                      const std::optional<Layout>& until = std::nullopt);

/// The steps that lead to a layout, and where they start. Expects that it was reached.
std::pair<Layout, std::vector<Conversion>> path_to(const Layout&, const Arrivals&);

}  // namespace stratagem::placement

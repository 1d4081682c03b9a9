// One step per conversion. From group to group one search over two layers of layouts: the costs at
// which the sends enter the consumers' layouts are the starts of the search among those.
#include "lowering/redistribute/uniform.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "lowering/redistribute/assemble.hpp"
#include "lowering/redistribute/cover.hpp"
#include "placement/grid.hpp"

namespace stratagem::lowering {

using placement::Arrivals;
using placement::AxisRole;
using placement::Conversion;
using placement::Layout;

namespace {

/// The devices' shares of a conversion, in groups of devices that differ only along its axes. Where
/// a value becomes partial values, the first of a group keeps it.
std::vector<std::vector<Share>> shares(const AlignedGrid& grid, const Conversion& conversion,
                                       const std::vector<Piece>& before,
                                       const std::vector<Piece>& now) {
  std::map<std::vector<int>, std::size_t> known;  // by the coordinates of the first
  std::vector<std::vector<Share>> groups;
  for (std::size_t i = 0; i < now.size(); ++i) {
    std::vector<int> first = placement::coordinates_in(grid.sizes, static_cast<int>(i));
    for (const int axis : conversion.axes) first[axis] = 0;
    const auto [group, fresh] = known.try_emplace(std::move(first), groups.size());
    if (fresh) groups.emplace_back();
    Share share{now[i].device, {before[i].mask}, now[i].mask};
    if (conversion.to.dim == placement::AxisRole::partial && !fresh) share.reads.clear();
    groups[group->second].push_back(std::move(share));
  }
  return groups;
}

/// What the devices of the grid hold in a layout, in the order of the grid.
std::vector<Piece> pieces_in(const placement::Layout& layout, const AlignedGrid& grid,
                             const std::vector<std::int64_t>& shape) {
  std::vector<Piece> pieces;
  pieces.reserve(grid.devices.size());
  for (int i = 0; i < static_cast<int>(grid.devices.size()); ++i) {
    pieces.push_back({grid.devices[i], mask_at(layout, shape, grid.sizes,
                                               placement::coordinates_in(grid.sizes, i))});
  }
  return pieces;
}

constexpr double slower_than_within = 24;

/// How many replicas, partial values, and parts of each dimension a layout has.
using Counts = std::vector<std::int64_t>;

Counts counts_of(const Layout& layout, const AlignedGrid& grid, std::size_t rank) {
  Counts counts(rank + 2, 1);
  for (std::size_t axis = 0; axis < layout.size(); ++axis) {
    const int dim = layout[axis].dim;
    const std::size_t place = dim == AxisRole::replica   ? 0
                              : dim == AxisRole::partial ? 1
                                                         : static_cast<std::size_t>(dim) + 2;
    counts[place] *= grid.sizes[axis];
  }
  return counts;
}

double local_size(const Counts& counts, const std::vector<std::int64_t>& shape) {
  double elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d)
    elements *= static_cast<double>(shape[d]) / static_cast<double>(counts[d + 2]);
  return elements;
}

/// nullopt where sends alone cannot do it.
std::optional<double> send_cost(const Counts& from, const Counts& to,
                                const std::vector<std::int64_t>& shape) {
  std::optional<std::size_t> changed;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) continue;
    if (changed) return std::nullopt;
    changed = i;
  }
  double elements = local_size(from, shape);
  if (changed) {
    const auto [small, large] = std::minmax(from[*changed], to[*changed]);
    const std::int64_t times = (large - 1) / small + 1;  // rounded up
    if (*changed != 0 && large % small != 0) return std::nullopt;
    if (*changed == 1 || (*changed == 0 && from[0] < to[0])) elements *= static_cast<double>(times);
    if (*changed > 1) elements = std::max(elements, local_size(to, shape));
  }
  return slower_than_within * elements + 1;
}

/// All layouts of the grid that come out even.
std::vector<Layout> layouts(const AlignedGrid& grid, const std::vector<std::int64_t>& shape) {
  std::vector<Layout> all{{}};
  for (std::size_t axis = 0; axis < grid.sizes.size(); ++axis) {
    std::vector<Layout> longer;
    for (const Layout& layout : all) {
      for (int dim = AxisRole::partial; dim < static_cast<int>(shape.size()); ++dim) {
        longer.push_back(layout);
        longer.back().push_back({dim});
        if (local_elements(longer.back(), shape, grid.sizes) < 0) longer.pop_back();
      }
    }
    all = std::move(longer);
  }
  return all;
}

/// A layout of the producers, and what it costs to be there.
struct Exit {
  double cost = 0;
  Layout layout;
};

/// The cheapest layout for every combination of counts.
std::map<Counts, Exit> exits(const Arrivals& arrivals, const AlignedGrid& producers,
                             std::size_t rank) {
  std::map<Counts, Exit> cheapest;
  for (const auto& [layout, arrival] : arrivals) {
    Exit exit{arrival.cost, layout};
    const auto [known, fresh] = cheapest.try_emplace(counts_of(layout, producers, rank), exit);
    if (!fresh && exit.cost < known->second.cost) known->second = std::move(exit);
  }
  return cheapest;
}

}  // namespace

std::vector<Step> within_group(const AlignedGrid& grid, const std::vector<std::int64_t>& shape,
                               placement::Layout from, const std::vector<Conversion>& conversions) {
  std::vector<Step> steps;
  steps.reserve(conversions.size());
  std::vector<Piece> before = pieces_in(from, grid, shape);
  for (const Conversion& conversion : conversions) {
    from = after(std::move(from), conversion);
    const std::vector<Piece> now = pieces_in(from, grid, shape);
    Step step{kind_of(conversion), shares(grid, conversion, before, now)};
    if (!conversion.communicates()) {
      std::vector<Share> all;
      for (const std::vector<Share>& group : step.groups)
        std::ranges::copy(group, std::back_inserter(all));
      step.groups = alone(all);
    }
    steps.push_back(std::move(step));
    before = now;
  }
  return steps;
}

std::vector<Step> across_groups(const AlignedGrid& producers, const AlignedGrid& consumers,
                                const std::vector<std::int64_t>& shape) {
  const Arrivals there =
      placement::convert_from({{producers.layouts[0], 0}}, shape, producers.sizes);
  const std::map<Counts, Exit> ways_out = exits(there, producers, shape.size());
  std::map<Layout, double> entries;
  std::map<Layout, Layout> exit_of;
  for (const Layout& layout : layouts(consumers, shape)) {
    const Counts counts = counts_of(layout, consumers, shape.size());
    for (const auto& [exit_counts, exit] : ways_out) {
      const auto sends = send_cost(exit_counts, counts, shape);
      if (!sends) continue;
      const auto [entry, fresh] = entries.try_emplace(layout, exit.cost + *sends);
      if (!fresh && entry->second <= exit.cost + *sends) continue;
      entry->second = exit.cost + *sends;
      exit_of[layout] = exit.layout;
    }
  }
  const Arrivals here =
      placement::convert_from(entries, shape, consumers.sizes, consumers.layouts[0]);
  const auto [entry, inwards] = path_to(consumers.layouts[0], here);
  const Layout& exit = exit_of.at(entry);
  std::vector<Step> steps =
      within_group(producers, shape, producers.layouts[0], path_to(exit, there).second);
  std::ranges::copy(cover(pieces_in(exit, producers, shape), pieces_in(entry, consumers, shape)),
                    std::back_inserter(steps));
  std::ranges::copy(within_group(consumers, shape, entry, inwards), std::back_inserter(steps));
  return steps;
}

}  // namespace stratagem::lowering

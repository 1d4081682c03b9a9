// One step per conversion.
#include "lowering/redistribute/within_group.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "lowering/redistribute/assemble.hpp"

namespace stratagem::lowering {

using placement::Conversion;

namespace {

/// The devices' shares of a conversion, in groups of devices that differ only along its axes. Where
/// a value becomes partial values, the first of a group keeps it.
std::vector<std::vector<Share>> shares(const AlignedGrid& grid, const Conversion& conversion,
                                       const std::vector<Piece>& before,
                                       const std::vector<Piece>& now) {
  std::map<std::vector<int>, std::size_t> known;  // by the coordinates of the first
  std::vector<std::vector<Share>> groups;
  for (std::size_t i = 0; i < now.size(); ++i) {
    std::vector<int> first = grid.coordinates(static_cast<int>(i));
    for (const int axis : conversion.axes) first[axis] = 0;
    const auto [group, fresh] = known.try_emplace(std::move(first), groups.size());
    if (fresh) groups.emplace_back();
    Share share{now[i].device, {before[i].mask}, now[i].mask};
    if (conversion.to.dim == placement::AxisRole::partial && !fresh) share.reads.clear();
    groups[group->second].push_back(std::move(share));
  }
  return groups;
}

}  // namespace

std::vector<Piece> pieces_in(const placement::Layout& layout, const AlignedGrid& grid,
                             const std::vector<std::int64_t>& shape) {
  std::vector<Piece> pieces;
  pieces.reserve(grid.devices.size());
  for (int i = 0; i < static_cast<int>(grid.devices.size()); ++i) {
    pieces.push_back({grid.devices[i], mask_at(layout, shape, grid.sizes, grid.coordinates(i))});
  }
  return pieces;
}

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

}  // namespace stratagem::lowering

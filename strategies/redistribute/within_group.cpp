// One step per conversion.
#include "strategies/redistribute/within_group.hpp"

#include <map>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

StepKind kind_of(const Conversion& conversion) {
  if (!conversion.communicates()) return StepKind::select;
  switch (conversion.collective()) {
    case cost::CollectiveKind::all_reduce:
      return StepKind::all_reduce;
    case cost::CollectiveKind::all_gather:
      return StepKind::all_gather;
    case cost::CollectiveKind::reduce_scatter:
      return StepKind::reduce_scatter;
    case cost::CollectiveKind::all_to_all:
      return StepKind::all_to_all;
    default:
      throw BrokenPromise("conversions are collectives of all ranks");
  }
}

}  // namespace

std::vector<Piece> pieces_in(const Layout& layout, const AlignedGrid& grid,
                             const std::vector<std::int64_t>& shape) {
  std::vector<Piece> pieces;
  for (int i = 0; i < static_cast<int>(grid.devices.size()); ++i) {
    pieces.push_back({grid.devices[i], mask_at(layout, shape, grid.sizes, grid.coordinates(i))});
  }
  return pieces;
}

std::vector<Step> within_group(const AlignedGrid& grid, const std::vector<std::int64_t>& shape,
                               Layout from, const std::vector<Conversion>& conversions) {
  std::vector<Step> steps;
  std::vector<Piece> before = pieces_in(from, grid, shape);
  for (const Conversion& conversion : conversions) {
    from = after(std::move(from), conversion);
    const std::vector<Piece> now = pieces_in(from, grid, shape);
    Step step{kind_of(conversion), {}};
    std::map<std::vector<int>, std::size_t> groups;  // by the coordinates along the other axes
    for (std::size_t i = 0; i < now.size(); ++i) {
      std::vector<int> others = grid.coordinates(static_cast<int>(i));
      if (conversion.communicates()) {
        for (const int axis : conversion.axes) others[axis] = 0;
      }
      const auto [group, fresh] = groups.try_emplace(others, groups.size());
      if (fresh) step.groups.emplace_back();
      step.groups[group->second].push_back({now[i].device, {before[i].mask}, now[i].mask});
    }
    steps.push_back(std::move(step));
    before = now;
  }
  return steps;
}

}  // namespace stratagem::strategies

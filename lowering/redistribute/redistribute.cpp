// Chooses how to redistribute: nothing, within a group, across groups, or the general cover.
#include "lowering/redistribute/redistribute.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "base/input_error.hpp"
#include "lowering/redistribute/across_groups.hpp"
#include "lowering/redistribute/cover.hpp"
#include "lowering/redistribute/join_producers.hpp"
#include "lowering/redistribute/within_group.hpp"

namespace stratagem::lowering {
namespace {

bool is_mask_of(const placement::Mask& mask, const std::vector<std::int64_t>& shape) {
  const placement::ValuePart value = mask.value;
  bool fits = mask.ranges.size() == shape.size() && value.index >= 0 && value.index < value.count;
  for (std::size_t d = 0; fits && d < shape.size(); ++d) {
    const placement::Range range = mask.ranges[d];
    fits = range.begin >= 0 && range.begin < range.end && range.end <= shape[d];
  }
  return fits;
}

/// Without repetitions, in the order of first appearance.
std::vector<Piece> distinct(const std::vector<Piece>& pieces,
                            const std::vector<std::int64_t>& shape) {
  std::set<Piece> seen;
  std::vector<Piece> result;
  for (const Piece& piece : pieces) {
    expects(is_mask_of(piece.mask, shape), "a piece lies within its tensor");
    if (seen.insert(piece).second) result.push_back(piece);
  }
  return result;
}

std::set<int> devices_of(const std::vector<Piece>& pieces) {
  std::set<int> devices;
  for (const Piece& piece : pieces) devices.insert(piece.device);
  return devices;
}

/// On whichever grid is cheaper; nullopt if there is none.
std::optional<std::vector<Step>> conversions(const std::vector<std::int64_t>& shape,
                                             const std::vector<Piece>& producers,
                                             const std::vector<Piece>& consumers) {
  std::optional<std::vector<Step>> cheapest;
  double least = 0;
  for (const AlignedGrid& grid : align({producers, consumers}, shape)) {
    const placement::Layout& from = grid.layouts[0];
    const std::vector<placement::Conversion> steps =
        convert(from, grid.layouts[1], shape, grid.sizes);
    const double cost = conversion_cost(steps, from, shape, grid.sizes);
    if (cheapest && cost >= least) continue;
    cheapest = within_group(grid, shape, from, steps);
    least = cost;
  }
  return cheapest;
}

/// The steps of the first method that fits.
std::vector<Step> steps_between(const std::vector<std::int64_t>& shape,
                                const std::vector<Piece>& producers,
                                const std::vector<Piece>& consumers) {
  const std::set<int> from = devices_of(producers);
  const std::set<int> to = devices_of(consumers);
  if (from == to) {
    if (auto steps = conversions(shape, producers, consumers)) return std::move(*steps);
  }
  std::vector<int> shared;
  std::ranges::set_intersection(from, to, std::back_inserter(shared));
  if (shared.empty()) {
    const std::vector<AlignedGrid> there = align({producers}, shape);
    const std::vector<AlignedGrid> here = align({consumers}, shape);
    if (!there.empty() && !here.empty()) return across_groups(there[0], here[0], shape);
  }
  return cover(producers, consumers);
}

}  // namespace

Redistribution redistribute(const std::vector<std::int64_t>& shape,
                            const std::vector<Piece>& producers,
                            const std::vector<Piece>& consumers) {
  const std::vector<Piece> made = distinct(producers, shape);
  const std::vector<Piece> wanted = distinct(consumers, shape);
  const auto is_there = [&](const Piece& piece) {
    return std::ranges::find(made, piece) != made.end();
  };
  if (std::ranges::all_of(wanted, is_there)) return {};
  auto [pieces, steps] = join_producers(made, wanted);
  std::ranges::move(steps_between(shape, pieces, wanted), std::back_inserter(steps));
  return {std::move(steps)};
}

}  // namespace stratagem::lowering

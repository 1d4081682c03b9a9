// Chooses how to redistribute: nothing, within a group, across groups, or the general cover.
#include "lowering/redistribute/redistribute.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/input_error.hpp"
#include "lowering/redistribute/assemble.hpp"
#include "lowering/redistribute/cover.hpp"
#include "lowering/redistribute/region.hpp"
#include "lowering/redistribute/uniform.hpp"

namespace stratagem::lowering {

using placement::Mask;
using placement::Range;

namespace {

bool is_mask_of(const Mask& mask, const std::vector<std::int64_t>& shape) {
  const placement::ValuePart value = mask.value;
  bool fits = mask.ranges.size() == shape.size() && value.index >= 0 && value.index < value.count;
  for (std::size_t d = 0; fits && d < shape.size(); ++d) {
    const Range range = mask.ranges[d];
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

/// The mask that the masks fill without a gap; nullopt if they overlap or leave one, or if their
/// values together are no part (i of n).
std::optional<Mask> filled_by(const std::vector<Mask>& masks) {
  const std::int64_t unit = common_unit(masks);
  Region box = region_of(masks.front(), unit);
  std::int64_t held = 0;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const Region region = region_of(masks[i], unit);
    for (std::size_t d = 0; d < box.size(); ++d) {
      box[d] = {std::min(box[d].begin, region[d].begin), std::max(box[d].end, region[d].end)};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(masks[i], masks[j])) return std::nullopt;
    }
    held += size_of(region);
  }
  const Range value = box.back();
  const std::int64_t width = value.end - value.begin;
  if (size_of(box) != held || unit % width != 0 || value.begin % width != 0) return std::nullopt;
  return Mask{{box.begin(), box.end() - 1}, {value.begin / width, unit / width}};
}

/// The part of the value that a mask sees, in units.
Range values_of(const Mask& mask, std::int64_t unit) { return region_of(mask, unit).back(); }

bool disjoint(const Range& a, const Range& b) { return a.end <= b.begin || b.end <= a.begin; }

/// May a device replace its masks by `all`, although others produce or consume these? A consumer's
/// part of the value must not begin or end within the sum; a producer's may be a part of it.
bool may_replace(const Mask& all, const std::vector<Mask>& produced,
                 const std::vector<Mask>& consumed, std::int64_t unit) {
  const Range sum = values_of(all, unit);
  const auto fits = [&](const Mask& mask) {
    const Range value = values_of(mask, unit);
    return disjoint(sum, value) || inside(sum, value);
  };
  return std::ranges::all_of(consumed, fits) &&
         std::ranges::all_of(produced, [&](const Mask& mask) {
           return fits(mask) || inside(values_of(mask, unit), sum);
         });
}

std::vector<Mask> masks_of(const std::vector<Piece>& pieces) {
  std::vector<Mask> masks;
  masks.reserve(pieces.size());
  for (const Piece& piece : pieces) masks.push_back(piece.mask);
  return masks;
}

struct JoinedProducers {
  std::vector<Piece> pieces;
  std::vector<Step> steps;  ///< local ones that make the joined masks
};

/// Joins a device's masks where they are disjoint and make up one mask (box and value), unless the
/// sum would hide a part of the value that a consumer wants, or would overlap only partly with what
/// another device produces. So partial sums are made before anything is sent, and layouts with one
/// piece per device are recognised. Source: nnScaler, local_producer_fusion in graph/gener/gen.py.
JoinedProducers join_producers(const std::vector<Piece>& producers,
                               const std::vector<Piece>& consumers) {
  std::map<int, std::vector<Mask>> by_device;
  for (const Piece& piece : producers) by_device[piece.device].push_back(piece.mask);
  std::map<int, Mask> larger;
  const std::vector<Mask> consumed = masks_of(consumers);
  std::vector<Mask> produced = masks_of(producers);
  for (const auto& [device, own] : by_device) {
    const std::optional<Mask> all = own.size() > 1 ? filled_by(own) : std::nullopt;
    if (!all) continue;
    larger.emplace(device, *all);
    produced.push_back(*all);
  }
  const std::int64_t unit = std::lcm(common_unit(produced), common_unit(consumed));
  std::erase_if(larger, [&](const auto& entry) {
    return !may_replace(entry.second, produced, consumed, unit);
  });
  JoinedProducers joined;
  std::vector<Assembly> assemblies;
  for (const Piece& piece : producers) {
    const std::vector<Mask>& own = by_device.at(piece.device);
    const auto all = larger.find(piece.device);
    if (all == larger.end()) {
      joined.pieces.push_back(piece);
    } else if (piece.mask == own.front()) {  // once for the device
      joined.pieces.push_back({piece.device, all->second});
      assemblies.push_back(assemble(piece.device, own, all->second));
    }
  }
  joined.steps = steps_of(assemblies);
  return joined;
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

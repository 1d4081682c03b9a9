// Finds the mask around a device's masks.
#include "lowering/redistribute/join_producers.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "lowering/redistribute/assemble.hpp"
#include "lowering/redistribute/region.hpp"

namespace stratagem::lowering {

using placement::Mask;
using placement::Range;

namespace {

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

}  // namespace

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

}  // namespace stratagem::lowering

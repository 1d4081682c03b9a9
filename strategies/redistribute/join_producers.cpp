// Finds the mask around a device's masks.
#include "strategies/redistribute/join_producers.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "strategies/redistribute/assemble.hpp"
#include "strategies/redistribute/region.hpp"

namespace stratagem::strategies {
namespace {

std::int64_t size_of(const Region& region) {
  std::int64_t size = 1;
  for (const Range& range : region) size *= range.end - range.begin;
  return size;
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

}  // namespace

JoinedProducers join_producers(const std::vector<Piece>& producers,
                               const std::vector<Piece>& consumers) {
  std::int64_t finest = 1;
  for (const Piece& consumer : consumers) finest = std::max(finest, consumer.mask.value.count);
  std::map<int, std::vector<Mask>> by_device;
  for (const Piece& piece : producers) by_device[piece.device].push_back(piece.mask);
  JoinedProducers joined;
  std::vector<Assembly> assemblies;
  for (const Piece& piece : producers) {
    const std::vector<Mask>& own = by_device.at(piece.device);
    const std::optional<Mask> all = own.size() > 1 ? filled_by(own) : std::nullopt;
    const bool hides = all && all->value != piece.mask.value && all->value.count < finest;
    if (!all || hides) {
      joined.pieces.push_back(piece);
    } else if (piece.mask == own.front()) {  // once for the device
      joined.pieces.push_back({piece.device, *all});
      assemblies.push_back(assemble(piece.device, own, *all));
    }
  }
  joined.steps = steps_of(assemblies);
  return joined;
}

}  // namespace stratagem::strategies

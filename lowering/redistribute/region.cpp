// Arithmetic of boxes.
#include "lowering/redistribute/region.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using placement::Mask;
using placement::Range;

Region region_of(const Mask& mask, std::int64_t unit) {
  expects(unit % mask.value.count == 0, "a unit of values is common to all masks");
  const std::int64_t width = unit / mask.value.count;
  Region region = mask.ranges;
  region.push_back({mask.value.index * width, (mask.value.index + 1) * width});
  return region;
}

std::int64_t common_unit(const std::vector<Mask>& masks) {
  std::int64_t unit = 1;
  for (const Mask& mask : masks) unit = std::lcm(unit, mask.value.count);
  return unit;
}

bool inside(const Range& inner, const Range& outer) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

std::optional<Region> common_part(const Region& a, const Region& b) {
  Region common(a.size());
  for (std::size_t d = 0; d < a.size(); ++d) {
    common[d] = {std::max(a[d].begin, b[d].begin), std::min(a[d].end, b[d].end)};
    if (common[d].begin >= common[d].end) return std::nullopt;
  }
  return common;
}

std::vector<Region> without(Region all, const Region& part) {
  std::vector<Region> rest;
  const auto keep = [&](std::size_t d, Range range) {
    if (range.begin >= range.end) return;
    rest.push_back(all);
    rest.back()[d] = range;
  };
  for (std::size_t d = 0; d < all.size(); ++d) {  // values last: they are cut only within `part`
    keep(d, {all[d].begin, part[d].begin});
    keep(d, {part[d].end, all[d].end});
    all[d] = part[d];
  }
  return rest;
}

std::int64_t size_of(const std::vector<Range>& box) {
  std::int64_t size = 1;
  for (const Range& range : box) size *= range.end - range.begin;
  return size;
}

std::string to_text(const Region& region, std::int64_t unit) {
  std::string text;
  for (std::size_t d = 0; d + 1 < region.size(); ++d) {
    text += fmt::format("{}[{}, {})", d == 0 ? "" : " x ", region[d].begin, region[d].end);
  }
  const Range value = region.back();
  if (value == Range{0, unit}) return text;
  return text +
         fmt::format(", from {}/{} to {}/{} of the value", value.begin, unit, value.end, unit);
}

}  // namespace stratagem::lowering

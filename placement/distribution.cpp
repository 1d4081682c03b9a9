// Asks a mask or a layout, whichever a part has.
#include "placement/distribution.hpp"

#include <algorithm>

namespace stratagem::placement {

const Part* part_on(const Distribution& distribution, int device) {
  const auto found = std::ranges::find(distribution, device, &PlacedPart::device);
  return found == distribution.end() ? nullptr : &found->part;
}

bool is_partial(const Part& part) {
  if (part.mask) return part.mask->value.count > 1;
  return std::ranges::find(part.layout, AxisRole{AxisRole::partial}) != part.layout.end();
}

Part completed(Part part) {
  if (part.mask) part.mask->value = {};
  std::ranges::replace(part.layout, AxisRole{AxisRole::partial}, AxisRole{AxisRole::replica});
  return part;
}

Distribution completed(Distribution distribution) {
  for (PlacedPart& placed : distribution) placed.part = completed(std::move(placed.part));
  return distribution;
}

std::vector<std::int64_t> shape_of(const model::Tensor& tensor, const Part& part,
                                   const Grid& grid) {
  return part.mask ? shape_of(*part.mask) : local_shape(tensor, part.layout, grid);
}

Bytes bytes_of(const model::Tensor& tensor, const Part& part, const Grid& grid) {
  return part.mask ? bytes_of(tensor, *part.mask) : local_bytes(tensor, part.layout, grid);
}

Bytes bytes_of(const model::Tensor& tensor, const Distribution& distribution, const Grid& grid) {
  Bytes bytes;
  for (const PlacedPart& placed : distribution) bytes += bytes_of(tensor, placed.part, grid);
  return bytes;
}

}  // namespace stratagem::placement

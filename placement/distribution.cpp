// Asks a mask or a layout, whichever a part has.
#include "placement/distribution.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::placement {
namespace {

Bytes bytes_of(const model::Tensor& tensor, const std::vector<std::int64_t>& shape) {
  double elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<double>(size);
  return elements * model::size_of(tensor.type);
}

}  // namespace

std::vector<std::int64_t> shape_of(const Mask& mask) {
  std::vector<std::int64_t> shape;
  for (const Range& range : mask.ranges) shape.push_back(range.end - range.begin);
  return shape;
}

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

std::optional<Layout> divided(Layout layout, std::size_t axis, const model::Tensor& tensor,
                              const Grid& grid) {
  for (int dim = 0; dim < static_cast<int>(tensor.shape.size()); ++dim) {
    layout[axis] = {dim};
    if (local_elements(layout, tensor.shape, grid.sizes()) >= 0) return layout;
  }
  return std::nullopt;
}

std::vector<std::int64_t> local_shape(const model::Tensor& tensor, const Layout& layout,
                                      const Grid& grid) {
  if (local_elements(layout, tensor.shape, grid.sizes()) < 0) {
    throw InputError("", "", "tensor " + tensor.name + " to divide into equal parts along its axes",
                     "");
  }
  // All parts are equal: the first device's mask tells their shape.
  return shape_of(mask_at(layout, tensor.shape, grid.sizes(), std::vector<int>(grid.axes.size())));
}

Bytes local_bytes(const model::Tensor& tensor, const Layout& layout, const Grid& grid) {
  return bytes_of(tensor, local_shape(tensor, layout, grid));
}

Bytes bytes_of(const model::Tensor& tensor, const Mask& mask) {
  return bytes_of(tensor, shape_of(mask));
}

}  // namespace stratagem::placement

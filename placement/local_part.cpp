// Parts of a layout are equal, so that one tells the shape of all.
#include "placement/local_part.hpp"

#include "base/input_error.hpp"

namespace stratagem::placement {

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
  const Mask mask =
      mask_at(layout, tensor.shape, grid.sizes(), std::vector<int>(grid.axes.size(), 0));
  std::vector<std::int64_t> shape;
  for (const Range& range : mask.ranges) shape.push_back(range.end - range.begin);
  return shape;
}

Bytes local_bytes(const model::Tensor& tensor, const Layout& layout, const Grid& grid) {
  double elements = 1;
  for (const std::int64_t size : local_shape(tensor, layout, grid))
    elements *= static_cast<double>(size);
  return elements * model::size_of(tensor.type);
}

std::vector<std::int64_t> shape_of(const Mask& mask) {
  std::vector<std::int64_t> shape;
  for (const Range& range : mask.ranges) shape.push_back(range.end - range.begin);
  return shape;
}

Bytes bytes_of(const model::Tensor& tensor, const Mask& mask) {
  double elements = 1;
  for (const Range& range : mask.ranges) elements *= static_cast<double>(range.end - range.begin);
  return elements * model::size_of(tensor.type);
}

}  // namespace stratagem::placement

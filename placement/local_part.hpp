// What a device has of a tensor: its shape and its bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "model/tensor.hpp"
#include "placement/grid.hpp"
#include "placement/layout.hpp"
#include "placement/mask.hpp"

namespace stratagem::placement {

/// The layout in which devices along an axis that held the same hold parts: of the first dimension
/// that can be divided; nullopt if none can.
std::optional<Layout> divided(Layout layout, std::size_t axis, const model::Tensor& tensor,
                              const Grid& grid);

/// The shape of the part that each device holds; throws InputError if the tensor does not divide
/// evenly.
std::vector<std::int64_t> local_shape(const model::Tensor& tensor, const Layout& layout,
                                      const Grid& grid);

/// Its bytes.
Bytes local_bytes(const model::Tensor& tensor, const Layout& layout, const Grid& grid);

/// The shape and the bytes of what a mask sees.
std::vector<std::int64_t> shape_of(const Mask& mask);
Bytes bytes_of(const model::Tensor& tensor, const Mask& mask);

}  // namespace stratagem::placement

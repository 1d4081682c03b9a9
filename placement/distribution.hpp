// How a tensor is distributed over devices: any masks on any of them, or equal parts on a grid.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "model/tensor.hpp"
#include "placement/grid.hpp"
#include "placement/layout.hpp"
#include "placement/mask.hpp"

namespace stratagem::placement {

/// What a device has of a tensor: what a mask sees; or, without one, what a layout leaves to every
/// device of a grid.
struct Part {
  Layout layout = {};
  std::optional<Mask> mask = {};
  friend auto operator<=>(const Part&, const Part&) = default;
};

/// A part on its device. A layout is on all devices of a grid; `device` is the first of them.
struct PlacedPart {
  int device = 0;
  Part part;
  friend bool operator==(const PlacedPart&, const PlacedPart&) = default;
};

/// All parts of a tensor, at most one on a device. Equal parts on a grid are a special case of
/// this that takes one entry, however many devices there are. Whoever goes through the entries
/// needs not know which case it is.
using Distribution = std::vector<PlacedPart>;

/// The part on a device; nullptr if there is none.
const Part* part_on(const Distribution& distribution, int device);

/// Is it less than the value of its elements?
bool is_partial(const Part& part);
/// The same elements with their value.
Part completed(Part part);
Distribution completed(Distribution distribution);

/// The shape and the bytes of a part. A layout is on `grid`; throws InputError if the tensor does
/// not divide evenly over it.
std::vector<std::int64_t> shape_of(const model::Tensor& tensor, const Part& part, const Grid& grid);
Bytes bytes_of(const model::Tensor& tensor, const Part& part, const Grid& grid);
/// Those of all entries.
Bytes bytes_of(const model::Tensor& tensor, const Distribution& distribution, const Grid& grid);

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

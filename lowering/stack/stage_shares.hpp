// Rules of shares: what tensor ranks hold alike and send to another stage in parts.
#pragma once

#include <optional>
#include <vector>

#include "cost/stack.hpp"
#include "placement/distribution.hpp"

namespace stratagem::lowering {

/// The layout of this device's share of a tensor that its grid sends. Along each axis whose ranks
/// hold the same, a share is a part of the first dimension that divides. nullopt if all of the
/// tensor is sent: there is no such axis, the stack sends no shares, or one all-gather cannot put
/// the shares together.
inline std::optional<placement::Layout> share_in(const model::Tensor& tensor,
                                                 const placement::Layout& layout,
                                                 const placement::Grid& grid,
                                                 const cost::Stack& stack) {
  const bool gradient = tensor.role == model::Role::gradient;
  if (!says(stack, gradient ? cost::StageShares::gradients : cost::StageShares::activations))
    return std::nullopt;
  placement::Layout share = layout;
  for (std::size_t axis = 0; axis < layout.size(); ++axis) {
    if (layout[axis].dim != placement::AxisRole::replica || grid.axes[axis].size == 1) continue;
    const auto parts = divided(share, axis, tensor, grid);
    if (!parts) return std::nullopt;
    share = *parts;
  }
  const std::vector<placement::Conversion> back =
      convert(share, layout, tensor.shape, grid.sizes());
  const bool gathers =
      back.size() == 1 && back.front().collective() == cost::CollectiveKind::all_gather;
  return gathers ? std::optional(share) : std::nullopt;
}

}  // namespace stratagem::lowering

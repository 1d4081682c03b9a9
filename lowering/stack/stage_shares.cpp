// Divides a tensor along the axes whose ranks hold the same.
#include "lowering/stack/stage_shares.hpp"

#include "placement/local_part.hpp"

namespace stratagem::lowering {

using placement::Layout;

std::optional<Layout> share_in(const model::Tensor& tensor, const Layout& layout,
                               const placement::Grid& grid, const cost::Stack& stack) {
  const bool gradient = tensor.role == model::Role::gradient;
  if (!says(stack, gradient ? cost::StageShares::gradients : cost::StageShares::activations))
    return std::nullopt;
  Layout share = layout;
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

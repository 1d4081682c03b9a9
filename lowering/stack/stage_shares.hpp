// Rules of shares: what tensor ranks hold alike and send to another stage in parts.
#pragma once

#include <optional>

#include "cost/stack.hpp"
#include "placement/grid.hpp"
#include "placement/layout.hpp"

namespace stratagem::lowering {

/// The layout of this device's share of a tensor that its grid sends. Along each axis whose ranks
/// hold the same, a share is a part of the first dimension that divides. nullopt if all of the
/// tensor is sent: there is no such axis, the stack sends no shares, or one all-gather cannot put
/// the shares together.
std::optional<placement::Layout> share_in(const model::Tensor& tensor,
                                          const placement::Layout& layout,
                                          const placement::Grid& grid, const cost::Stack& stack);

}  // namespace stratagem::lowering

// Blocks of one task that send or receive.
#pragma once

#include <optional>

#include "cost/stack.hpp"
#include "strategies/lower/blocks.hpp"
#include "strategies/lower/messages.hpp"

namespace stratagem::strategies {

/// One side of the messages of a kind between two equal grids.
struct Transfer {
  const Message& message;
  const Grid& grid;  ///< of this side
  int group = 0;
  Stream stream = Stream::send_forward;
};

/// Sends a tensor or receives it: all of it, or this device's share (`shared`) of what its grid holds
/// alike, which the receivers gather at once. What is sent is freed by that, unless the stack keeps it:
/// then an activation of which a gradient comes back waits for it, of a shared one a copy of the share.
Block message_block(const Transfer& transfer, const Blocks& blocks, const cost::Stack& stack,
                    Groups& groups);

/// How this device's share of a tensor lies that a grid sends: along the axes whose devices hold the
/// same, a part of the first dimension that divides. nullopt where it sends all of it: there is no such
/// axis, the stack has no shares, or one all-gather cannot put them together.
std::optional<Layout> shared(const model::Tensor& tensor, const Layout& layout, const Grid& grid,
                             const cost::Stack& stack);

/// One side of what a stage's forward cell keeps on its way to the devices that take it in, or
/// `back`. Evictions concern whole micro-batches.
Block eviction_block(const Plan& plan, const Stages& stages, const Blocks& blocks, int stage,
                     int group, bool back, bool sends);

}  // namespace stratagem::strategies

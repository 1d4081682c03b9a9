// Blocks that send or receive.
#pragma once

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

/// Sends a tensor or receives it: all of it, or, where the stack says so, this device's share of what
/// its grid holds alike, which the receivers gather at once. What is sent is freed by that, unless the
/// stack keeps it: then an activation of which a gradient comes back waits for it, or, where shares
/// are sent, a copy of the share does.
Block message_block(const Transfer& transfer, const Blocks& blocks, const cost::Stack& stack,
                    Groups& groups);

/// One side of what a stage's forward cell keeps on its way to the devices that take it in, or
/// `back`. Evictions concern whole micro-batches.
Block eviction_block(const Plan& plan, const Stages& stages, const Blocks& blocks, int stage,
                     int group, bool back, bool sends);

}  // namespace stratagem::strategies

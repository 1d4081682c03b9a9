// Blocks that send or receive messages between stages.
#pragma once

#include "cost/stack.hpp"
#include "lowering/blocks/blocks.hpp"
#include "lowering/sequences/messages.hpp"

namespace stratagem::lowering {

/// One side of the messages of one kind between two equal grids.
struct Transfer {
  const Message& message;
  const placement::Grid& grid;  ///< of this side
  int group = 0;
  program::Stream stream = program::Stream::send_forward;
};

/// Sends or receives a tensor: all of it, or, if the stack says so, only this device's share of
/// what several ranks of the grid hold alike; the receivers gather the shares at once. The sent
/// buffer is freed, unless the stack keeps it until the gradient comes back. Then the activation
/// stays allocated, or, if shares are sent, a copy of the share.
program::Block message_block(const Transfer& transfer, const Blocks& blocks,
                             const cost::Stack& stack, Groups& groups);

}  // namespace stratagem::lowering

// Blocks of one task that send or receive.
#pragma once

#include "strategies/lower/blocks.hpp"
#include "strategies/lower/messages.hpp"

namespace stratagem::strategies {

/// One side of a message between equal grids; `grid` is the sender's. What is sent is freed by that,
/// unless `sent_is_kept`: then an activation of which a gradient comes back waits for it.
Block message_block(const Message& message, const Blocks& blocks, const Grid& grid, int group,
                    Stream stream, bool sent_is_kept);

/// One side of what a stage's forward cell keeps on its way to the devices that take it in, or
/// `back`. Evictions concern whole micro-batches.
Block eviction_block(const Plan& plan, const Stages& stages, const Blocks& blocks, int stage,
                     int group, bool back, bool sends);

}  // namespace stratagem::strategies

// Collectives of shards with what a framework does beside them: it clears what it gathers, and
// copies every rank's part through a second whole buffer.
#pragma once

#include "cost/stack.hpp"
#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Appends a gather over so many ranks to a block that has its slots. What it bears is there from
/// the clearing on, where the framework clears; that task is then where the host waits.
void append_gather(Block& block, Task gather, int ranks, const cost::ShardCollectives& facts);

/// Appends a reduce-scatter likewise.
void append_scatter(Block& block, Task scatter, int ranks, const cost::ShardCollectives& facts);

}  // namespace stratagem::strategies

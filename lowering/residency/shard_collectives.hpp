// Collectives of shards, with the kernels that a framework runs beside them: it zeroes the
// destination of a gather, and copies every rank's part through a second whole buffer.
#pragma once

#include "cost/stack.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// Appends a gather over so many ranks to a block that has its slots. If the framework zeroes the
/// destination, the buffers are allocated by that task, and the host waits there.
void append_gather(program::Block& block, program::Task gather, int ranks,
                   const cost::ShardCollectives& facts);

/// Appends a reduce-scatter likewise.
void append_scatter(program::Block& block, program::Task scatter, int ranks,
                    const cost::ShardCollectives& facts);

/// Appends to a reduce-scatter, the last task of its block, the kernels that add what it leaves
/// (`shard` bytes) to the shards that earlier micro-batches have left. They are the stack's kernels
/// for whole gradients, but never part of a product: one for each gradient at least.
void append_accumulation(program::Block& block, Bytes shard, const cost::OperatorKernels& rule);

}  // namespace stratagem::lowering

// Lowers one pass of one segment to a block: tasks, the collectives between them, and lives of
// buffers.
#pragma once

#include <cstdint>
#include <map>

#include "lowering/blocks/lowered_block.hpp"

namespace stratagem::lowering {

/// Which run of a segment's forward pass a block is.
enum class ForwardRun : std::uint8_t {
  trains,  ///< a backward pass follows
  infers,  ///< none does
  again    ///< in the backward pass, before a block of gradients
};

/// F: runs the forward operators. It keeps what the backward operators read and no group
/// recomputes, and the inputs of groups, divided as the plan's checkpoint_axes say. A run `again`
/// keeps what the backward operators read and no group within it recomputes, and inputs of those
/// groups. A run that only `infers` keeps nothing. Later segments read the tensors of
/// activations_out that `leaves` describes: in a layout without partial values, counted as the
/// category says. `in` gives the layouts of activations_in, which no later segment reads.
LoweredPass lower_forward(const BlockContext& context, const std::map<int, Border>& in,
                          const std::map<int, program::Category>& leaves, ForwardRun run);

/// Which operators of a segment's backward pass a block runs: B and W as one, or either.
enum class BackwardPart : std::uint8_t { both, input, weight };

/// B: runs the input-gradient operators and, in `both`, the weight-gradient operators. A recomputed
/// group of forward operators runs again right before the first operator that reads one of its
/// inner tensors. `kept` is what earlier blocks left for this one (and its activations_in). `in`
/// gives the layouts of gradients_in. If W is a block of its own, B leaves what W reads, and it is
/// in the `kept` of W. A gradient of a parameter in `kept` is a partial result: a later segment has
/// begun to sum it up.
LoweredPass lower_backward(const BlockContext& context, const std::map<int, Border>& kept,
                           const std::map<int, Border>& in, BackwardPart part);

}  // namespace stratagem::lowering

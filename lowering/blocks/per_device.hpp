// Lowers one pass of one segment of an irregular stage: a block for every device.
#pragma once

#include <map>
#include <vector>

#include "lowering/blocks/block.hpp"

namespace stratagem::lowering {

/// By position in the replica. `out` of the single blocks is empty: what leaves the segment lies on
/// all of them.
struct PerDeviceBlocks {
  std::vector<LoweredBlock> devices;
  std::map<int, Border> out;
};

/// The same passes as in block.hpp, for operators on different devices or in unequal parts. Goes
/// through the operators in order and brings each part its inputs: what its device does not hold is
/// redistributed from the holders of the version of the tensor that is cheapest to move
/// (redistribute.hpp). All devices get their tasks in one global order, so all communicate in the
/// same order. The stack's fusions are left out: every operator is a kernel of its own.
PerDeviceBlocks forward_per_device(const BlockContext& context, const std::map<int, Border>& in,
                                   const std::map<int, program::Category>& leaves, ForwardRun run);
PerDeviceBlocks backward_per_device(const BlockContext& context, const std::map<int, Border>& kept,
                                    const std::map<int, Border>& in, BackwardPart part);

/// What the devices of an irregular stage hold of a tensor, for the first of `ops` that reads it;
/// the whole tensor on every device if none does.
std::vector<std::optional<placement::Mask>> masks_read(const strategies::Plan& plan,
                                                       const placement::Grid& grid, int copy,
                                                       const std::vector<model::OpId>& ops,
                                                       model::TensorId tensor);

}  // namespace stratagem::lowering

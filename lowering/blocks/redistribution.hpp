// Blocks that bring a tensor from one replica to another whose grid differs.
#pragma once

#include <map>

#include "lowering/blocks/lowered_block.hpp"
#include "lowering/redistribute/steps.hpp"

namespace stratagem::lowering {

/// A tensor that moves to another grid.
struct RedistributedTensor {
  model::TensorId id = -1;
  const model::Tensor* tensor = nullptr;
  const placement::Grid* from = nullptr;
  const placement::Grid* to = nullptr;
  Border leaves;   ///< as the producing block left it
  Border arrives;  ///< as the consuming block wants it
  bool backward = false;
  int purpose = -1;  ///< of the groups: what flows between two stages has its own
};

/// By device; tensor names in slots are the tensor itself.
struct RedistributionBlocks {
  std::map<int, LoweredBlock> leaving;   ///< devices of `from`: after the producing cell
  std::map<int, LoweredBlock> arriving;  ///< devices of `to`: before the consuming cell
  /// Of devices that have both: the task of `arriving` that waits for what has left.
  std::map<int, int> joins;
};

/// The steps of `redistribute` as tasks (moves.hpp). A buffer that nobody on its device needs any
/// more is freed. If all devices of `to` are in `from`, everything leaves. Otherwise what a device
/// sends leaves, and what it receives arrives: devices that are in `to` alone take part before the
/// consuming cell, so no computation of another device waits for them earlier. Its host, which may
/// wait for that computation, would launch nothing meanwhile, and they may need what it has not
/// launched: a deadlock.
RedistributionBlocks redistribution_blocks(const RedistributedTensor& moved,
                                           const model::Graph& graph, Groups& groups);

}  // namespace stratagem::lowering

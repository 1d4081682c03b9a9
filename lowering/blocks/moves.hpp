// The steps of a redistribution as tasks of the devices that take part.
#pragma once

#include <map>
#include <set>

#include "lowering/blocks/device_block.hpp"
#include "lowering/redistribute/steps.hpp"
#include "lowering/stages/groups.hpp"

namespace stratagem::lowering {

/// What is moved, and how.
struct Move {
  SlotName tensor;
  model::Combine combine = model::Combine::sum;                 ///< of partial values
  program::Category category = program::Category::temporaries;  ///< of new buffers
  /// Parts that outlive the buffer which they are selected from; other selections are views.
  std::set<Piece> copied;
  bool backward = false;
  bool recomputed = false;
  bool blocking = false;  ///< communication begins when all computation before it has ended
  bool held = false;      ///< transfers: see DeviceBlock::hold_transfers
  int purpose = -1;       ///< of the groups (Groups::of)
};

/// Appends tasks to the blocks of all devices that take part, in an order that is the same for all.
/// Sends and broadcasts are on the transfer streams, collectives on the communication stream; sums,
/// concatenations and selections that are copied move memory.
void append(const Redistribution& redistribution, const Move& move,
            std::map<int, DeviceBlock>& blocks, Groups& groups, const model::Tensor& tensor);

}  // namespace stratagem::lowering

// The steps of a redistribution as tasks of the devices that take part.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "cost/stack.hpp"
#include "lowering/blocks/block_draft.hpp"
#include "lowering/redistribute/steps.hpp"
#include "lowering/stages/groups.hpp"

namespace stratagem::lowering {

/// By device. Of a grid whose devices run one block that of the first.
using BlockDrafts = std::map<int, BlockDraft>;

/// What is moved, and how.
struct Move {
  SlotName tensor;
  model::Combine combine = model::Combine::sum;                 ///< of partial values
  program::Category category = program::Category::temporaries;  ///< of new buffers
  /// Parts that outlive the buffer which they are selected from; other selections are views.
  std::set<Piece> copied = {};
  bool backward = false;
  bool recomputed = false;
  /// If a stack is named, communication begins when all computation before it has ended but for
  /// what this stack runs beside it; transfers: see also BlockDraft::hold_transfers.
  const cost::Stack* issued_by = nullptr;
  int purpose = -1;  ///< of the groups (Groups::of)
  /// Of some devices: what comes in, and all that follows, if it is a block of its own. Selections
  /// are there, too.
  BlockDrafts* arriving = nullptr;
};

/// Appends tasks to the blocks of all devices that take part, in an order that is the same for all.
/// Sends and broadcasts are on the transfer streams, collectives on the communication stream; sums,
/// concatenations and selections that are copied move memory.
void append(const Redistribution& redistribution, const Move& move, BlockDrafts& blocks,
            Groups& groups, const model::Tensor& tensor);

/// Appends one step between layouts to the block of a grid. A step that does not communicate is a
/// view.
void append(const placement::Conversion& step, const placement::Layout& from, const Move& move,
            const placement::Grid& grid, BlockDrafts& blocks, Groups& groups,
            const model::Tensor& tensor);

}  // namespace stratagem::lowering

// Turns the steps of a redistribution into a block for every device that takes part.
#include "lowering/blocks/redistribution.hpp"

#include <algorithm>
#include <utility>

#include "lowering/blocks/moves.hpp"
#include "lowering/redistribute/redistribute.hpp"

namespace stratagem::lowering {
namespace {

/// What every device of a grid has of a tensor.
std::vector<Piece> pieces(const model::Tensor& tensor, const placement::Grid& grid,
                          const Border& border) {
  std::vector<Piece> result;
  for (int i = 0; i < grid.count(); ++i) {
    const std::vector<int> at = grid.coordinates(i);
    if (border.masks.empty()) {
      result.push_back({grid.device(at), mask_at(border.layout, tensor.shape, grid.sizes(), at)});
    } else if (border.masks[i]) {
      result.push_back({grid.device(at), *border.masks[i]});
    }
  }
  return result;
}

class RedistributionLowering {
 public:
  RedistributionLowering(const RedistributedTensor& moved, const model::Graph& graph,
                         Groups& groups)
      : c_(moved), graph_(graph), groups_(groups) {}

  RedistributionBlocks run() {
    const std::vector<Piece> have = pieces(*c_.tensor, *c_.from, c_.leaves);
    const std::vector<Piece> want = pieces(*c_.tensor, *c_.to, c_.arrives);
    const SlotName name{c_.id, c_.id, c_.tensor->name};
    BlockDrafts blocks;
    for (const Piece& piece : have) {
      block_of(blocks, piece.device).import(name, {.mask = piece.mask}, c_.leaves.category);
    }
    for (const Piece& piece : want) block_of(blocks, piece.device);
    append(redistribute(c_.tensor->shape, have, want),
           {.tensor = name,
            .copied = {want.begin(), want.end()},
            .backward = c_.backward,
            .purpose = c_.purpose},
           blocks, groups_, *c_.tensor);
    return finish(blocks, want);
  }

 private:
  BlockDraft& block_of(BlockDrafts& blocks, int device) const {
    return blocks.try_emplace(device, graph_, *c_.from, "move " + c_.tensor->name).first->second;
  }

  /// Without those of devices that have nothing to do.
  RedistributionBlocks finish(BlockDrafts& blocks, const std::vector<Piece>& want) const {
    const std::vector<int> from = c_.from->devices();  // also those that have no part of the tensor
    for (const Piece& piece : want) {
      BlockDraft& block = blocks.at(piece.device);
      block.keep(block.slot_of(c_.id, {.mask = piece.mask}), c_.arrives.category);
    }
    RedistributionBlocks result;
    for (auto& [device, block] : blocks) {
      LoweredBlock lowered;
      lowered.block = block.finish().block;
      if (lowered.block.tasks.empty()) continue;
      const auto kept = std::ranges::find(want, device, &Piece::device);
      if (kept != want.end()) {
        if (const int writer = block.ready(block.slot_of(c_.id, {.mask = kept->mask})); writer >= 0)
          lowered.last_writer[0] = writer;
      }
      (std::ranges::binary_search(from, device) ? result.leaving : result.arriving)
          .emplace(device, std::move(lowered));
    }
    return result;
  }

  const RedistributedTensor& c_;
  const model::Graph& graph_;
  Groups& groups_;
};

}  // namespace

RedistributionBlocks redistribution_blocks(const RedistributedTensor& moved,
                                           const model::Graph& graph, Groups& groups) {
  return RedistributionLowering(moved, graph, groups).run();
}

}  // namespace stratagem::lowering

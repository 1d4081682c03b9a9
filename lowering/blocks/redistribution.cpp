// Turns the steps of a redistribution into a block for every device that takes part.
#include "lowering/blocks/redistribution.hpp"

#include <algorithm>
#include <utility>

#include "lowering/blocks/lifetimes.hpp"
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
    const std::vector<int> from = c_.from->devices();  // also those that have no part of the tensor
    const bool apart = std::ranges::any_of(
        want, [&](const Piece& piece) { return !std::ranges::binary_search(from, piece.device); });
    for (const int device : from) add_block(leaving_, device);
    for (const Piece& piece : want) add_block(apart ? arriving_ : leaving_, piece.device);
    for (const Piece& piece : have) {
      for (BlockDrafts* blocks : {&leaving_, &arriving_}) {
        const auto block = blocks->find(piece.device);
        if (block != blocks->end())
          block->second.import(name_, {.mask = piece.mask}, c_.leaves.category);
      }
    }
    append(redistribute(c_.tensor->shape, have, want),
           {.tensor = name_,
            .copied = {want.begin(), want.end()},
            .backward = c_.backward,
            .purpose = c_.purpose,
            .arriving = &arriving_},
           leaving_, groups_, *c_.tensor);
    for (const Piece& piece : have) hand_on(piece);
    std::map<int, int> written;  // by device: the task that makes what it wants
    for (const Piece& piece : want) {
      BlockDraft& block = (apart ? arriving_ : leaving_).at(piece.device);
      const int slot = block.slot_of(c_.id, {.mask = piece.mask});
      block.keep(slot, c_.arrives.category);
      if (block.ready(slot) >= 0) written[piece.device] = block.ready(slot);
    }
    finish(leaving_, apart ? std::map<int, int>() : written, blocks_.leaving);
    finish(arriving_, written, blocks_.arriving);
    return std::move(blocks_);
  }

 private:
  void add_block(BlockDrafts& blocks, int device) const {
    blocks.try_emplace(device, graph_, *c_.from, "move " + c_.tensor->name);
  }

  /// A device that sends what it has and receives frees it, or reads it, when it has been sent.
  void hand_on(const Piece& piece) {
    const auto arriving = arriving_.find(piece.device);
    if (arriving == arriving_.end()) return;
    BlockDraft& leaving = leaving_.at(piece.device);
    const placement::Part part{.mask = piece.mask};
    leaving.hand_on(leaving.slot_of(c_.id, part));
    if (leaving.lowered().block.tasks.empty()) return;
    program::Task sent = idle_task(c_.tensor->name + " has left");
    sent.reads = {arriving->second.slot_of(c_.id, part)};
    blocks_.joins[piece.device] = arriving->second.push(std::move(sent));
  }

  /// Without those of devices that have nothing to do.
  static void finish(BlockDrafts& blocks, const std::map<int, int>& written,
                     std::map<int, LoweredBlock>& result) {
    for (auto& [device, block] : blocks) {
      LoweredBlock lowered;
      lowered.block = block.finish().block;
      if (lowered.block.tasks.empty()) continue;
      if (const auto writer = written.find(device); writer != written.end())
        lowered.last_writer[0] = writer->second;
      result.emplace(device, std::move(lowered));
    }
  }

  const RedistributedTensor& c_;
  const model::Graph& graph_;
  Groups& groups_;
  const SlotName name_{c_.id, c_.id, c_.tensor->name};
  BlockDrafts leaving_, arriving_;
  RedistributionBlocks blocks_;
};

}  // namespace

RedistributionBlocks redistribution_blocks(const RedistributedTensor& moved,
                                           const model::Graph& graph, Groups& groups) {
  return RedistributionLowering(moved, graph, groups).run();
}

}  // namespace stratagem::lowering

// Brings operators what they read: which distributions of every tensor there are, and the steps
// from one to another.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "lowering/blocks/lowered_block.hpp"
#include "lowering/blocks/moves.hpp"
#include "lowering/stages/operands.hpp"

namespace stratagem::lowering {

class Connections {
 public:
  /// Moves tensors in these blocks.
  Connections(const BlockContext& context, BlockDrafts& blocks)
      : c_(context), graph_(context.graph), blocks_(blocks) {}

  /// A tensor is there in a distribution: from the start, or written by an operator that says how
  /// partial values become the full one.
  void add(model::TensorId tensor, placement::Distribution version) {
    versions_[tensor].push_back(std::move(version));
  }
  void set_combine(model::TensorId tensor, model::Combine combine) { combine_[tensor] = combine; }
  [[nodiscard]] bool has(model::TensorId tensor) const { return versions_.contains(tensor); }
  /// All distributions in which a tensor was made or read here, and still is; the first one first.
  [[nodiscard]] const std::vector<placement::Distribution>& versions(model::TensorId tensor) const {
    return versions_.at(tensor);
  }

  /// The operands of an operator. An operand of a sum: where all operands are partial sums alike,
  /// they are added as they are. The result is a partial sum, too, and is completed once rather
  /// than each of them.
  [[nodiscard]] Operands operands(model::OpId op) const;

  /// Has every block hold its part of what is wanted, moved from the version that is cheapest to
  /// move. Expects that an operator wrote the tensor, or that it was there.
  void obtain(const SlotName& tensor, const placement::Distribution& wanted, bool recomputed);
  /// Of what a forward operator has read, forgets what a ring of messages brought: its backward
  /// pass has messages of its own.
  void forget_passed(model::OpId op, const Operands& operands);

 private:
  struct Route;

  [[nodiscard]] placement::Distribution left_partial(const model::Operator& op,
                                                     placement::Distribution wanted) const;
  [[nodiscard]] bool held(model::TensorId tensor, const placement::Distribution& wanted) const;
  [[nodiscard]] Route route(model::TensorId tensor, const placement::Distribution& from,
                            const placement::Distribution& wanted) const;
  [[nodiscard]] Route cheapest(model::TensorId tensor, const placement::Distribution& wanted) const;
  void move(const SlotName& tensor, const Route& route, bool recomputed);
  void note_ring(const placement::Conversion& step, model::TensorId tensor, int slot,
                 BlockDraft& block);

  const BlockContext& c_;
  const model::Graph& graph_;
  BlockDrafts& blocks_;
  std::map<model::TensorId, std::vector<placement::Distribution>> versions_;
  std::set<model::TensorId> passed_;  ///< keys and values that a ring has brought, and still there
  std::map<model::TensorId, model::Combine> combine_;  ///< how partial values become the full one
};

}  // namespace stratagem::lowering

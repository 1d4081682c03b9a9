// Rules of pieces: which collectives are cut together with a product, and how.
#pragma once

#include <optional>

#include "cost/stack.hpp"
#include "placement/grid.hpp"

namespace stratagem::lowering {

/// The ranks that rules of pieces speak of: those of this axis of a grid.
inline bool are_tensor_ranks(const placement::Axis& axis) { return axis.name == "tensor"; }

/// How a collective and the product beside it are cut.
struct Cut {
  enum class Way : std::uint8_t { ring_exchange, own_share_first, scatter };
  Way way = Way::ring_exchange;
  int pieces = 2;  ///< of a gather: its ranks
  int spared = 0;  ///< multiprocessors of the collective
};

/// What a stack says of a collective among `ranks`; nullopt if it stays whole.
inline std::optional<Cut> cut_of(const cost::Stack& stack, cost::CollectiveKind kind,
                                 bool of_gradients, int ranks) {
  if (kind == cost::CollectiveKind::all_gather) {
    for (const auto& rule : cost::rules_of<cost::GatherInPieces>(stack)) {
      if (rule.of_gradients != of_gradients) continue;
      const bool ring = rule.by == cost::GatherInPieces::By::ring_exchange;
      return Cut{ring ? Cut::Way::ring_exchange : Cut::Way::own_share_first, ranks};
    }
  }
  if (kind == cost::CollectiveKind::reduce_scatter && !of_gradients) {
    for (const auto& rule : cost::rules_of<cost::ScatterInPieces>(stack))
      return Cut{Cut::Way::scatter, rule.pieces, rule.multiprocessors};
  }
  return std::nullopt;
}

}  // namespace stratagem::lowering

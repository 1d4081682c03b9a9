// Slices of the tokens of a micro-batch, for models with causal attention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// Tokens [begin, end) of `total`, and what annotations call queries' and keys' tokens. Queries of
/// a slice see the keys of all tokens before its end: the mask [0, end) of keys and values, which
/// the slices before it have left on the same device. No token values are needed for that.
struct TokenSlice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t total = 0;
  std::string tokens;
  std::string keys;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
  [[nodiscard]] bool whole() const { return begin == 0 && end == total; }
};

/// The slices of a plan, one that is whole if it has none. Throws InputError if the model has no
/// causal attention or the slices do not add up to its tokens, and where a segment is recomputed
/// (it would need keys that are not kept).
std::vector<TokenSlice> token_slices(const strategies::Plan& plan);

/// The graph as it works on one slice, with the same ids. Buffers have the slice's tokens; scores
/// its tokens by the keys before its end; gradients of keys and values all tokens, since slices
/// share them.
model::Graph sliced(const model::Graph& graph, const TokenSlice& slice);

/// The shape in which an operator sees an operand: along the tokens the slice's, along keys those
/// before its end.
std::vector<std::int64_t> operand_shape(std::vector<std::int64_t> shape,
                                        const std::vector<model::Term>& terms,
                                        const TokenSlice& slice);

}  // namespace stratagem::lowering

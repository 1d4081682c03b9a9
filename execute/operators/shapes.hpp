// Facts of an operator that do not depend on the backend: sizes, places, and how tensors lie.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "execute/operators/application.hpp"
#include "kernels/attention.hpp"
#include "kernels/gemm.hpp"
#include "kernels/part.hpp"
#include "kernels/rotary.hpp"
#include "kernels/softmax.hpp"
#include "kernels/strided.hpp"

namespace stratagem::execute {

/// An application without its values.
struct Shapes {
  const model::Graph& graph;
  const model::Operator& op;
  std::vector<const Region*> inputs, outputs;

  [[nodiscard]] bool is_forward() const { return op.pass == model::Pass::forward; }
  /// The forward operator of a backward one; itself of a forward one.
  [[nodiscard]] const model::Operator& forward() const {
    return op.forward >= 0 ? graph.operators[op.forward] : op;
  }
};

template <typename T>
Shapes shapes_of(const Application<T>& application) {
  Shapes result{application.graph, application.op, {}, {}};
  for (const Shared<T>& input : application.inputs) result.inputs.push_back(&input->region);
  for (const Shared<T>& output : application.outputs) result.outputs.push_back(&output->region);
  return result;
}

/// Of a contraction; `swapped`: its second operand is the left matrix.
struct Product {
  kernels::Gemm shape;
  bool swapped = false;
};
Product product_of(const Shapes& shapes);

/// Heads and rows of tokens (batch, tokens, groups, width), in each of which a group's elements
/// from `first` on are those of these heads: `inner` of them in a row, `run` side by side on both
/// sides.
struct HeadsCopy {
  std::int64_t batch = 0, tokens = 0, groups = 0, inner = 0, run = 0;
  std::int64_t by_batch = 0, by_token = 0, by_group = 0, by_run = 0;  ///< between heads' elements
  std::int64_t width = 0, first = 0;
};
/// Of a split of heads, one for queries, keys and values each, or of a merge, forward or backward.
std::vector<HeadsCopy> heads_of(const Shapes& shapes);

/// Of an operator that puts trained rows before those of tokens: in every head, or in every sample,
/// which counts as one head.
struct Prepending {
  std::int64_t heads = 0, of_sample = 0;  ///< of all samples, of one
  std::int64_t width = 0;                 ///< elements of a head
  std::int64_t rows = 0;                  ///< elements of a head's trained rows
};
Prepending prepending_of(const Shapes& shapes);

/// Rows (batch, tokens, heads, size) of fused attention. Its kernel sees them as (batch, heads, the
/// first `tokens` tokens, size).
struct HeadRows {
  std::int64_t batch = 0, heads = 0, size = 0;
  std::int64_t tokens = 0;  ///< that it sees
  std::int64_t all = 0;     ///< that there are

  [[nodiscard]] std::size_t seen() const {
    return static_cast<std::size_t>(batch * heads * tokens * size);
  }
  [[nodiscard]] kernels::Strided to_heads() const;
  [[nodiscard]] kernels::Strided to_rows() const;
};

/// Rotary positions. `rows`: set if heads lie in rows of tokens, as for fused attention, and are to
/// be turned as heads.
struct RotaryPositions {
  kernels::Rotary turn;
  std::optional<HeadRows> rows;
};
RotaryPositions rotary_of(const Shapes& shapes);

/// Fused attention, forward or backward. `gives`: the operand (0 queries, 1 keys, 2 values) whose
/// gradient a backward operator computes; -1 if it is not the gradient of a single one.
struct FusedAttention {
  kernels::Attention shape;
  HeadRows queries, keys, values, results, sums;
  int gives = -1;

  [[nodiscard]] const HeadRows& rows_of(int operand) const {
    return operand == 0 ? queries : operand == 1 ? keys : values;
  }
};
FusedAttention fused_attention_of(const Shapes& shapes);

/// What keys the queries of a softmax see, which are its last dimension but one.
kernels::CausalMask causal_mask_of(const Shapes& shapes);
/// 1 / sqrt(size of a head): of the dimension that the product which made the scores sums over.
double scale_of_scores(const Shapes& shapes);

/// Of dropout: its result as a part of the model's tensor, and that tensor's numbers.
struct Dropped {
  kernels::Part part;
  kernels::RandomStream random;
};
Dropped dropped_of(const Shapes& shapes, kernels::RandomStream random);

/// Of an embedding's table: the first row that is here, and its width.
struct Lookup {
  std::int64_t first = 0, width = 0;
};
Lookup lookup_of(const Shapes& shapes);

/// The first of the classes that a part of the logits holds.
inline std::int64_t first_class(const Region& logits) { return logits.mask.ranges.back().begin; }

/// What norms add to a variance.
inline constexpr double norm_epsilon = 1e-5;

}  // namespace stratagem::execute

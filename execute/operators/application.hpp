// One operator, applied to the parts of its operands that a rank has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "execute/value.hpp"
#include "kernels/operand.hpp"
#include "kernels/philox.hpp"
#include "model/graph.hpp"

namespace stratagem::execute {

/// Operands lie as the operator's annotation has them, each a part of its tensor. Results are there
/// already, with zeros, or with what is to be added to.
template <typename T>
struct Application {
  const model::Graph& graph;
  const model::Operator& op;
  std::vector<Shared<T>> inputs;
  std::vector<Shared<T>> outputs;
  kernels::RandomStream random;  ///< of the micro-batch and iteration; each tensor has its own
  double dropout = 0.1;          ///< probability that an element is dropped
  double loss_weight = 1;        ///< gradient of every row's loss

  [[nodiscard]] kernels::In<T> in(std::size_t i) const { return inputs[i]->data; }
  [[nodiscard]] kernels::Out<T> out(std::size_t i) const { return outputs[i]->data; }
  /// The forward operator of a backward one; itself of a forward one.
  [[nodiscard]] const model::Operator& forward() const {
    return op.forward >= 0 ? graph.operators[op.forward] : op;
  }
};

/// Rows of the last dimension of a value.
template <typename T>
kernels::Rows rows_of(const Value<T>& value) {
  const std::int64_t columns = value.region.shape().back();
  return {.rows = columns == 0 ? 0 : value.region.size() / columns, .columns = columns};
}

/// What runs the kernels.
enum class Backend : std::uint8_t { cpu, cuda };

/// Why there is no kernel of a backend for an operator; "" if there is one.
std::string refusal(const model::Graph& graph, const model::Operator& op, Backend backend);

/// Are a contraction's operands and result, as they lie, matrices of each batch?
bool is_matrix_product(const model::Operator& contraction);

/// The elements of a head that a forward operator turns; a fused attention's queries hold several
/// heads in a row, as many as share the keys of one.
std::int64_t head_size(const model::Graph& graph, const model::Operator& rotary);

/// Of a fused attention, whose queries' rows hold several heads, as its log sums tell.
std::int64_t fused_head_size(const model::Graph& graph, const model::Operator& attention);

/// Is what a fused attention's backward operator computes the gradient of one of its operands,
/// which nobody else adds to?
bool is_gradient_of_one(const model::Graph& graph, const model::Operator& attention);

/// Expects an operator that is not refused.
template <typename T>
void apply(const Application<T>& application);

// One file each: products, fused attention, what works element by element, along rows, on heads, on
// slots of experts, and the loss. They return false for a kind that is not theirs.
template <typename T>
bool apply_contraction(const Application<T>& application);
template <typename T>
bool apply_attention(const Application<T>& application);
template <typename T>
bool apply_pointwise(const Application<T>& application);
template <typename T>
bool apply_rows(const Application<T>& application);
template <typename T>
bool apply_heads(const Application<T>& application);
template <typename T>
bool apply_experts(const Application<T>& application);
template <typename T>
bool apply_loss(const Application<T>& application);

}  // namespace stratagem::execute

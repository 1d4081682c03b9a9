// A network as a dataflow graph of one micro-batch: tensors and annotated operators, forward and
// backward.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/annotation.hpp"
#include "model/tensor.hpp"

namespace stratagem::model {

using OpId = int;

/// What an operator computes. What each saves for its backward pass is what its gradients read:
/// differentiate.cpp.
enum class OpKind : std::uint8_t {
  embedding,          ///< rows of a table, picked by token
  add,                ///< sum of two activations, or of an activation and a broadcast table
  bias_add,           ///< adds a vector along the last dimension
  layer_norm,         ///< with scale and shift; statistics are its second output
  contraction,        ///< a matrix product, batched or not
  split_heads,        ///< queries, keys and values of every head, cut out of one tensor and copied
  merge_heads,        ///< the inverse permutation for one tensor, copied
  masked_softmax,     ///< scales, masks and normalises scores
  dropout,            ///< its mask is its second output
  attention_dropout,  ///< the same on attention probabilities, where frameworks draw other random
                      ///< numbers
  gelu,
  row_max,      ///< maximum along the last dimension: partial results combine by maximum
  exponential,  ///< exp(x - row value), in fp32
  row_sum,      ///< sum along the last dimension
  pick,  ///< the element that a label names along the last dimension, 0 where it is elsewhere
  cross_entropy,  ///< log of the row sum minus the picked logit
  layer_norm_scale_gradient,
  bias_gradient,
  gradient_sum,  ///< adds the gradients that several consumers of one tensor return
  optimizer_step,
};
std::string to_text(OpKind);
/// The names of all kinds.
std::vector<std::string> operator_kind_names();

/// Which part of a training step an operator belongs to: B = input gradients, W = weight gradients.
enum class Pass : std::uint8_t { forward, input_gradient, weight_gradient, optimizer };

/// How partial values of an operator's outputs combine into the full value.
enum class Combine : std::uint8_t { sum, maximum };

struct Operator {
  std::string name;
  OpKind kind = OpKind::add;
  Pass pass = Pass::forward;
  Annotation annotation;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  int segment = 0;
  OpId forward = -1;  ///< the forward operator that a backward operator belongs to
  Combine combine = Combine::sum;
};

/// A stretch of the network that plans treat as one: it is scheduled as a whole.
struct Segment {
  std::string name;
  std::vector<OpId> forward;
  std::vector<OpId> backward;   ///< B and W operators in the order in which they can run
  std::vector<OpId> optimizer;  ///< one step per parameter that this segment is the first to read
};

/// Tensors and operators are indexed by their ids; operators stand in an order in which they can
/// run.
struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  std::vector<Segment> segments;
  std::vector<TensorId> gradient_of;  ///< by tensor: its gradient, -1 where there is none
  TensorId loss = -1;                 ///< of which gradients are taken
  /// How often the forward pass runs before the one backward pass, which is of the last; between
  /// repeats each `recycled` output of a segment becomes the input of another.
  int forward_repeats = 1;
  std::vector<std::pair<TensorId, TensorId>> recycled;
};

/// 2 * the product of all identifiers' sizes for contractions, 0 for other kinds; shapes of the
/// whole tensors.
Flops flops(const Graph&, const Operator& op);

/// Elements of all parameters.
std::int64_t parameter_count(const Graph&);

}  // namespace stratagem::model

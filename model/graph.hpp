// A network as a dataflow graph of one micro-batch: tensors and annotated operators, forward and
// backward.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/annotation.hpp"
#include "model/tensor.hpp"

namespace stratagem::model {

using OpId = int;

/// What an operator computes: rows of the table in operator_kinds.cpp, of which the first are those
/// that code names here. What each saves for its backward pass is what its gradients read.
enum class OpKind : std::uint8_t {
  embedding,          ///< rows of a table, picked by token
  add,                ///< sum of two activations, or of an activation and a broadcast table
  bias_add,           ///< adds a vector along the last dimension
  layer_norm,         ///< with scale and shift; statistics are its second output
  rms_norm,           ///< with scale; statistics are its second output
  contraction,        ///< a matrix product, batched or not
  split_heads,        ///< parts of every head, or of a row, cut out of one tensor and copied
  merge_heads,        ///< the inverse permutation for one tensor, copied
  rotary,             ///< turns pairs of a head's elements by an angle that grows with the position
  repeat,             ///< copies keys or values for every query that shares them
  masked_softmax,     ///< scales, masks and normalises scores; keys may begin before the queries
  causal_softmax,     ///< masks and normalises scores that nothing scales
  softmax,            ///< normalises along the last dimension
  scaled_softmax,     ///< scales and normalises scores of tokens that see all others
  dropout,            ///< its mask is its second output
  attention_dropout,  ///< the same on attention probabilities, where frameworks draw other random
                      ///< numbers
  /// All of a causal attention core as one kernel that keeps no scores; its second output is the
  /// logarithm of every row's sum.
  fused_attention,
  fused_attention_to_all,  ///< the same of tokens that see all others
  cached_attention,        ///< fused, and causal: writes keys and values to caches, and reads these
  gelu,
  relu,
  squared_relu,
  silu,
  swiglu,  ///< silu of one half of a projection times the other half, as one kernel
  sigmoid,
  multiply,  ///< elementwise
  cast,      ///< the same numbers in the type of linear layers' products (cast_products.hpp)
  identity,  ///< a border where plans may change what is divided: a buffer of its own, no kernel
  prepend,   ///< trained rows of every head before those of a tensor of keys or values
  relative_bias,         ///< a score for every pair of places and head, by their distance
  causal_relative_bias,  ///< the same, of places that only look back
  dispatch,  ///< copies every token to slots of the experts that it is sent to; the slots' numbers
             ///< are its second output
  combine,   ///< adds what experts returned for a token, weighted by the router's probabilities
  row_max,   ///< maximum along the last dimension: partial results combine by maximum
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

/// Which part of a training step an operator belongs to: B = input gradients, W = weight gradients.
enum class Pass : std::uint8_t { forward, input_gradient, weight_gradient, optimizer };

/// How partial values of an operator's outputs combine into the full value.
enum class Combine : std::uint8_t { sum, maximum };

/// Of a square image of tokens, row by row: rows, as many columns, and the side of the windows into
/// which it is cut.
struct ImageWindows {
  std::int64_t rows = 0;
  std::int64_t side = 0;
};

struct Operator {
  std::string name;
  OpKind kind = OpKind::add;
  Pass pass = Pass::forward;
  SharedAnnotation annotation = without_terms();
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  int segment = 0;
  OpId forward = -1;  ///< the forward operator that a backward operator belongs to
  Combine combine = Combine::sum;
  /// Of a copy that divide() made: how many copies there are, and the identifier that they share
  /// out.
  int copies = 1;
  std::string shared = {};
  /// Of a fused attention, forward: how many of the last tokens a token sees, itself among them; 0:
  /// all.
  std::int64_t window = 0;
  /// Of a fused attention behind a causal mask, forward: the lengths of the documents that make a
  /// sample, which see nothing of each other; empty: one.
  std::vector<std::int64_t> documents = {};
  /// Of an attention with caches: tokens of each sample whose keys and values stand in them
  /// already.
  std::int64_t cached = 0;
  ImageWindows image = {};  ///< of what moves tokens of images, or knows windows of them
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
  /// By tensor: its gradient, -1 where there is none. Of an activation that later segments read:
  /// the sum of what those return.
  std::vector<TensorId> gradient_of;
  /// Type in which gradients of parameters are held, see hold_gradients_in; none: the parameter's.
  std::optional<DataType> held_gradients = {};
  TensorId loss = -1;              ///< of which gradients are taken
  std::int64_t sample_tokens = 0;  ///< of one sample, to count tokens per second
  /// How many times the forward pass runs before the one backward pass, which is of the last one.
  int forward_repeats = 1;
  /// What a pass hands to the next one: {a tensor that the last segment reads or computes, the
  /// input of the first segment that it becomes}; no gradient goes back. The first pass gets zeros.
  std::vector<std::pair<TensorId, TensorId>> recycled;
};

/// The forward operator that an operator follows; itself of a forward one.
inline OpId forward_of(const Graph& graph, OpId op) {
  const OpId forward = graph.operators[op].forward;
  return forward < 0 ? op : forward;
}

/// Is it an attention core as one kernel, or a gradient of one?
bool is_fused_attention(const Operator&);

/// Of a fused attention, the sum over its products of the width that each multiplies, for one pair
/// of tokens and one head; twice that are its FLOPs. Forward: scores, and the sum of values.
/// Backward: the gradient of queries includes that of probabilities; scores that are computed again
/// do not count.
std::int64_t widths_of_attention(const Operator& op, std::int64_t key, std::int64_t value);

/// The segments between the first and the last, but for those that begin with an embedding: layers.
std::vector<int> layers(const Graph&);

/// Model FLOPs, whatever a kernel computes: 2 * the product of all identifiers' sizes for
/// contractions, as many for each product within a fused attention (its backward pass has four,
/// scores that are computed again not counted), 0 for other kinds; shapes of the whole tensors. All
/// pairs of tokens count, those that a causal mask hides, too, as in Megatron-LM's formula,
/// 72BLsh^2(1 + s/6h + V/12hL) without recomputation (Narayanan et al., arXiv:2104.04473, equation
/// 3); of a window so many keys for each query, of packed documents those of its own. Empty slots
/// of experts do not count.
Flops flops(const Graph&, const Operator& op);

/// Of all forward passes and the backward pass of one micro-batch.
Flops step_flops(const Graph&);

/// The first matrix product of the forward pass that has no dimension of this name to divide; -1 if
/// all have.
OpId product_without(const Graph&, const std::string& dimension);

/// Has the gradients of parameters held in a type of their own, between micro-batches and in sums
/// over devices; what computes them computes in the type of what it reads.
void hold_gradients_in(Graph& graph, DataType type);

/// Elements of all parameters.
std::int64_t parameter_count(const Graph&);

}  // namespace stratagem::model

// Transformers: what all families of them have in common, and each choice in which they differ.
#pragma once

#include <cstdint>
#include <string>

#include "model/builder.hpp"
#include "model/zoo/mixture_of_experts.hpp"
#include "model/zoo/mlp.hpp"

namespace stratagem::model {

/// How a model knows where a token stands.
enum class Positions : std::uint8_t {
  learned,  ///< a table whose rows are added to the embeddings
  rotary,   ///< queries and keys are turned in every layer
  none
};

/// Where a norm stands: before attention and MLP, or after their residual sums.
enum class NormPlace : std::uint8_t { before, after };

struct Attention {
  std::int64_t heads = 0;
  /// Keys and values, each shared by heads / kv_heads queries; 0: one for every query. It names the
  /// dimension that ranks divide: "g", groups of queries with one key; with 0 "heads".
  std::int64_t kv_heads = 0;
  bool causal = true;         ///< tokens see those before them; else all of them
  bool fused = false;         ///< its core as one kernel, see fused_attention.hpp
  bool norms = false;         ///< of queries and keys, over the width of a head
  bool repeats_keys = false;  ///< keys and values are copied for every query before a fused core
  std::int64_t prefix = 0;    ///< trained positions before the tokens, see prefix.hpp; 0: none
};

/// `batch` is the micro-batch over all data-parallel ranks together; sizes are of the whole model.
/// Head size is hidden / heads.
struct TransformerConfig {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;
  std::int64_t batch = 1;
  DataType type = DataType::fp16;
  Positions positions = Positions::learned;
  OpKind norm = OpKind::layer_norm;  ///< layer_norm or rms_norm
  NormPlace norms = NormPlace::before;
  Bias bias = Bias::added;  ///< of the attention's linear layers
  bool dropout = false;     ///< after the embeddings, on probabilities, before residual sums
  Attention attention;
  Mlp mlp;
  Experts experts;
};

/// What the embeddings leave: rows of the table of words, with those of learned positions added.
struct Embedded {
  TensorId words;  ///< the table
  TensorId rows;   ///< (batch, sequence, hidden)
};
Embedded embedded(Builder& build, const TransformerConfig& config);

/// Drops elements of (batch, sequence, hidden), if the model drops any.
TensorId dropped(Builder& build, const TransformerConfig& config, const std::string& name,
                 TensorId x);

/// Adds one segment for each layer:
///   x = x + dropout(W_o attention(norm(x)));  x = x + dropout(mlp(norm(x)))
/// or, with norms after the sums, x = norm(x + dropout(W_o attention(x))) and likewise for the MLP.
/// Queries, keys and values are one matrix. With a prefix every layer has trained keys and values
/// before those of the tokens, without rotary positions.
TensorId layers(Builder& build, const TransformerConfig& config, TensorId x);

/// The product with a table of words.
TensorId logits(Builder& build, TensorId x, TensorId words);
/// Logits to which a trained bias of every word is added.
TensorId with_bias(Builder& build, TensorId logits);

}  // namespace stratagem::model

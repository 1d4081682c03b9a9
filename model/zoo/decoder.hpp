// Decoder-only transformers: what GPT and Llama have in common, and each choice in which they
// differ.
#pragma once

#include <cstdint>
#include <string>

#include "model/graph.hpp"
#include "model/zoo/mixture_of_experts.hpp"
#include "model/zoo/mlp.hpp"

namespace stratagem::model {

/// How a model knows where a token stands.
enum class Positions : std::uint8_t {
  learned,  ///< a table whose rows are added to the embeddings
  rotary,   ///< queries and keys are turned in every layer
  none
};

struct Attention {
  std::int64_t heads = 0;
  /// Keys and values, each shared by heads / kv_heads queries; 0: one for every query. It names the
  /// dimension that ranks divide: "g", groups of queries with one key; with 0 "heads".
  std::int64_t kv_heads = 0;
  bool fused = false;         ///< its core as one kernel, see fused_attention.hpp
  bool norms = false;         ///< of queries and keys, over the width of a head
  bool repeats_keys = false;  ///< keys and values are copied for every query before a fused core
  std::int64_t prefix = 0;    ///< trained positions before the tokens, see prefix.hpp; 0: none
};

/// What follows the layers.
struct Head {
  bool tied = false;        ///< logits use the word embedding; else a table of their own
  bool fused_loss = false;  ///< see fused_cross_entropy
};

/// `batch` is the micro-batch over all data-parallel ranks together; sizes are of the whole model.
struct DecoderConfig {
  std::string name;  ///< of the graph
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;
  std::int64_t batch = 1;
  DataType type = DataType::fp16;
  Positions positions = Positions::learned;
  OpKind norm = OpKind::layer_norm;  ///< layer_norm or rms_norm
  Bias bias = Bias::added;           ///< of the attention's linear layers
  bool dropout = false;  ///< after the embeddings, on probabilities, before residual sums
  Attention attention;
  Mlp mlp;
  Experts experts;
  Head head;
};

/// One segment for the embeddings, one per layer, one for the final norm, logits and loss. Per
/// layer:
///   x = x + dropout(W_o attention(norm(x)));  x = x + dropout(mlp(norm(x)))
/// Queries, keys and values are one matrix. The loss is the cross-entropy of b*s tokens, in fp32.
/// Head size is hidden / heads. With a prefix every layer has trained keys and values before those
/// of the tokens, without rotary positions; nothing else is trained, and attention is not fused.
Graph decoder(const DecoderConfig& config);

}  // namespace stratagem::model

// Choices in which families of transformers differ.
#pragma once

#include <cstdint>

#include "model/graph.hpp"
#include "model/zoo/fused_attention.hpp"
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

/// Queries, keys and values that are products of narrow vectors of a token, see
/// latent_attention.hpp.
struct Latent {
  std::int64_t key_rank = 0;    ///< of keys and values together; 0: they come of the token itself
  std::int64_t query_rank = 0;  ///< of queries; 0: they come of the token itself
  std::int64_t rotary = 0;      ///< a head's elements that are turned, besides those of its width
  std::int64_t values = 0;      ///< width of a head's values; 0: the head's
  friend bool operator==(const Latent&, const Latent&) = default;
};

struct Attention {
  std::int64_t heads = 0;
  /// Keys and values, each shared by heads / kv_heads queries; 0: one for every query. It names the
  /// dimension that ranks divide: "g", groups of queries with one key; with 0 "heads".
  std::int64_t kv_heads = 0;
  Sight sight = {};           ///< a window and sinks want a fused core
  bool fused = false;         ///< its core as one kernel, see fused_attention.hpp
  bool norms = false;         ///< of queries and keys, over the width of a head
  bool repeats_keys = false;  ///< keys and values are copied for every query before a fused core
  std::int64_t prefix = 0;    ///< trained positions before the tokens, see prefix.hpp; 0: none
  std::int64_t width = 0;     ///< of a head; 0: its share of the hidden size
  Latent latent = {};
  Cache cache = {};  ///< of keys and values, with a fused core
};

/// `batch` is the micro-batch over all data-parallel ranks together; sizes are of the whole model.
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

  [[nodiscard]] std::int64_t head_width() const {
    return attention.width > 0 ? attention.width : hidden / attention.heads;
  }
};

}  // namespace stratagem::model

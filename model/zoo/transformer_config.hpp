// Choices in which families of transformers differ.
#pragma once

#include <cstdint>

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

}  // namespace stratagem::model

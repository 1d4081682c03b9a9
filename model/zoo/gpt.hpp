// GPT-2, GPT-3 and variants of them; layers may be mixtures of experts.
#pragma once

#include <cstdint>

#include "model/graph.hpp"
#include "model/zoo/decoder_task.hpp"
#include "model/zoo/mixture_of_experts.hpp"
#include "model/zoo/transformer_config.hpp"

namespace stratagem::model {

/// In what a model differs from GPT-2 and GPT-3.
struct GptVariant {
  OpKind norm = OpKind::layer_norm;  ///< layer_norm or rms_norm
  Positions positions = Positions::learned;
  bool biases = true;           ///< of linear layers
  std::int64_t kv_heads = 0;    ///< keys and values; 0: one for every query
  bool qk_norm = false;         ///< of queries and keys, over the width of a head
  bool fused_loss = false;      ///< see fused_cross_entropy
  std::int64_t head_width = 0;  ///< 0: a head's share of the hidden size
  Sight sight = {};             ///< see fused_attention.hpp
  DecoderTask task = {};        ///< see decoder_task.hpp
  friend bool operator==(const GptVariant&, const GptVariant&) = default;
};

/// `batch` is the micro-batch over all data-parallel ranks together; sizes are of the whole model.
struct GptConfig {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;  ///< as padded for the run
  std::int64_t batch = 1;
  DataType type = DataType::fp16;
  std::int64_t intermediate = 0;     ///< width of the MLP; 0: four times the hidden size
  OpKind activation = OpKind::gelu;  ///< of the MLP: gelu, relu, squared_relu, or swiglu
  bool dropout = true;               ///< after embeddings, on probabilities, before residual sums
  bool fused_attention = false;      ///< its core as one kernel, see fused_attention.hpp
  bool tied = true;                  ///< logits use the word embedding; else a table of their own
  std::int64_t prefix = 0;           ///< trained places before the tokens, see prefix.hpp; 0: none
  Experts experts;
  GptVariant variant = {};
  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

/// A decoder (decoder.hpp), by default with learned positions, biases and layer norms, as in GPT-2
/// and Megatron-LM:
///   x = x + dropout(W_o attention(norm(x)) + b_o);  x = x + dropout(W_2 gelu(W_1 norm(x) + b_1) +
///   b_2)
/// with dropout on the attention probabilities; in a mixture of experts the MLP is what
/// mixture_of_experts.hpp says; a fused attention draws its random numbers again and keeps no mask.
Graph gpt(const GptConfig& config);

}  // namespace stratagem::model

// Llama 1 to 3, Qwen3, Mixtral and DeepSeek-V3: decoder-only transformers with rotary positions,
// RMS norms, gated MLPs, which layers may have many of, and queries that share keys and values; no
// biases, no dropout.
#pragma once

#include <cstdint>

#include "model/graph.hpp"
#include "model/zoo/decoder_task.hpp"
#include "model/zoo/transformer_config.hpp"

namespace stratagem::model {

/// What is one kernel; in parts, more is kept for the backward pass.
struct LlamaFusions {
  bool attention = true;  ///< its core, see fused_attention.hpp
  bool swiglu = true;     ///< silu and product as one kernel that keeps its input only
  bool loss = false;      ///< see fused_cross_entropy
  friend bool operator==(const LlamaFusions&, const LlamaFusions&) = default;
};

/// Choices of its attention.
struct LlamaVariant {
  bool qk_norm = false;       ///< of queries and keys, over the width of a head
  bool repeats_keys = false;  ///< keys and values are copied for every query, as some frameworks do
  std::int64_t head_width = 0;  ///< 0: a head's share of the hidden size
  Sight sight = {};             ///< see fused_attention.hpp
  Latent latent = {};           ///< see latent_attention.hpp
  DecoderTask task = {};        ///< see decoder_task.hpp
  friend bool operator==(const LlamaVariant&, const LlamaVariant&) = default;
};

/// `batch` is the micro-batch over all data-parallel ranks together; sizes are of the whole model.
struct LlamaConfig {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< keys and values; heads / kv_heads queries share each
  std::int64_t intermediate = 0;
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;  ///< as padded for the run
  std::int64_t batch = 1;
  DataType type = DataType::bf16;
  bool tied = false;  ///< logits use the word embedding; else a table of their own
  LlamaFusions fused;
  std::int64_t prefix = 0;  ///< trained places before the tokens, see prefix.hpp; 0: none
  Experts experts;
  LlamaVariant variant = {};
  friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

/// A decoder (decoder.hpp) with
///   x = x + W_o attention(rotary(W_qkv norm(x)));  x = x + W_down(silu(W_gate norm(x)) * W_up
///                                                  norm(x))
/// Queries, keys and values are one matrix (unless they are latent), gate and up another, unless
/// the latter are not fused. Heads are divided by the groups that share keys and values. A mixture
/// of experts has many MLPs, see mixture_of_experts.hpp. Mixtral divides the weights of the chosen
/// ones by their sum; that is left out: it moves nothing and takes no time. Source: Llama Team,
/// arXiv:2407.21783, section 3.2; Jiang et al., Mixtral of Experts, arXiv:2401.04088, section 2.
Graph llama(const LlamaConfig& config);

}  // namespace stratagem::model

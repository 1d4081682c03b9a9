// GPT-2 and GPT-3: decoder-only transformers with learned positions; layers may be mixtures of
// experts.
#pragma once

#include <cstdint>

#include "model/graph.hpp"
#include "model/zoo/mixture_of_experts.hpp"

namespace stratagem::model {

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
  OpKind activation = OpKind::gelu;  ///< of the MLP: gelu or relu
  bool dropout = true;               ///< after embeddings, on probabilities, before residual sums
  bool fused_attention = false;      ///< its core as one kernel, see fused_attention.hpp
  bool tied = true;                  ///< logits use the word embedding; else a table of their own
  std::int64_t prefix = 0;           ///< trained places before the tokens, see prefix.hpp; 0: none
  Experts experts;
  friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

/// One segment for the embeddings, one per layer, one for the final norm, logits and loss. Per
/// layer:
///   x = x + dropout(W_o attention(norm(x)) + b_o);  x = x + dropout(W_2 gelu(W_1 norm(x) + b_1) +
///   b_2)
/// with dropout on the attention probabilities, as in GPT-2 and Megatron-LM; in a mixture of
/// experts the MLP is what mixture_of_experts.hpp says; a fused attention draws its random numbers
/// again and keeps no mask. The loss is the cross-entropy of b*s
/// tokens, in fp32. Head size is hidden / heads. With a prefix every layer has trained keys and
/// values before those of the tokens, nothing else is trained; its attention is not fused.
Graph gpt(const GptConfig& config);

}  // namespace stratagem::model

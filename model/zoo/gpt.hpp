// GPT-2 and GPT-3: decoder-only transformers with learned positions and tied embeddings.
#pragma once

#include <cstdint>

#include "model/graph.hpp"

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
};

/// One segment for the embeddings, one per layer, one for the final norm, logits and loss. Per
/// layer:
///   x = x + dropout(W_o attention(norm(x)) + b_o);  x = x + dropout(W_2 gelu(W_1 norm(x) + b_1) +
///   b_2)
/// with dropout on the attention probabilities, as in GPT-2 and Megatron-LM. Logits use the word
/// embedding. The loss is the cross-entropy of b*s tokens, in fp32. Head size is hidden / heads.
Graph gpt(const GptConfig& config);

/// 12Lh^2 + 13Lh + (V + s + 2)h: per layer 12h^2 weights, 9h biases, 4h norms; both embeddings; the
/// final norm.
std::int64_t gpt_parameters(const GptConfig& config);

}  // namespace stratagem::model

// Closed forms of how many parameters models have.
#pragma once

#include <cstdint>

#include "model/zoo/bert.hpp"
#include "model/zoo/evoformer.hpp"
#include "model/zoo/gpt.hpp"
#include "model/zoo/llama.hpp"
#include "model/zoo/t5.hpp"

namespace stratagem::model {

/// Of all layers together, with MLPs of `one` parameters: an MLP each; in mixtures count * h of the
/// router and count MLPs.
inline std::int64_t feed_forward_parameters(std::int64_t layers, const Experts& experts,
                                            std::int64_t one, std::int64_t hidden) {
  const std::int64_t mixtures = experts.count > 0 ? layers / experts.every : 0;
  return layers * one + mixtures * (experts.count * (hidden + one) - one);
}

/// 12Lh^2 + 13Lh + (V + s + 2)h: per layer 12h^2 weights, 9h biases, 4h norms; both embeddings; the
/// final norm. An MLP of width f has 2fh + f + h parameters in place of 8h^2 + 5h. A table of its
/// own for the logits adds Vh; a mixture of E experts adds Eh for its router and E - 1 MLPs, a
/// prefix of P places 2LPh.
inline std::int64_t gpt_parameters(const GptConfig& c) {
  const std::int64_t h = c.hidden, f = c.intermediate > 0 ? c.intermediate : 4 * h;
  return c.layers * (4 * h * h + 8 * h) +
         feed_forward_parameters(c.layers, c.experts, 2 * f * h + f + h, h) +
         (c.vocabulary + c.sequence + 2) * h + (c.tied ? 0 : c.vocabulary * h) +
         2 * c.layers * c.prefix * h;
}

/// Layers as a GPT's; tables (V + s + 2)h, and 2h of one more norm; of the words' head h^2 + h, 2h
/// of its norm and V biases; of the sentences' h^2 + h and 2h + 2. Without the latter there are no
/// types of tokens, 2h less.
inline std::int64_t bert_parameters(const BertConfig& c) {
  const std::int64_t h = c.hidden, f = c.intermediate > 0 ? c.intermediate : 4 * h;
  const std::int64_t sentences = c.next_sentence ? h * h + h + 2 * h + 2 + 2 * h : 0;
  return c.layers * (4 * h * h + 2 * f * h + f + h + 8 * h) + (c.vocabulary + c.sequence) * h +
         2 * h + h * h + h + 2 * h + c.vocabulary + sentences + (c.tied ? 0 : c.vocabulary * h);
}

/// L(2h^2 + 2hk + 3hf + 2h) + 2Vh + h with k = kv_heads * h / heads and MLPs of width f; tied: Vh;
/// a prefix of P places adds 2LPk, a mixture of E experts Eh and 3(E - 1)hf.
inline std::int64_t llama_parameters(const LlamaConfig& c) {
  const std::int64_t h = c.hidden, k = c.kv_heads * h / c.heads;
  return c.layers * (2 * h * h + 2 * h * k + 2 * h) +
         feed_forward_parameters(c.layers, c.experts, 3 * h * c.intermediate, h) +
         (c.tied ? 1 : 2) * c.vocabulary * h + h + 2 * c.layers * c.prefix * k;
}

/// With i = heads * head_width, m = 2hf, gated 3hf, and B buckets of distances:
///   L_e (4hi + m + 2h) + L_d (8hi + m + 3h) + 2h + 2 B heads + Vh; untied Vh more.
inline std::int64_t t5_parameters(const T5Config& c) {
  const std::int64_t h = c.hidden;
  const std::int64_t matrix = c.head_width == 0 ? h * h : h * c.heads * c.head_width;
  const std::int64_t mlp = (c.variant.mlp == T5Mlp::gated_gelu ? 3 : 2) * h * c.intermediate;
  return c.layers * (4 * matrix + mlp + 2 * h) + c.decoder_layers * (8 * matrix + mlp + 3 * h) +
         2 * h + 2 * c.bias_buckets * c.heads + (c.tied ? 1 : 2) * c.vocabulary * h;
}

/// Of one block, with m and z the widths, h_m and h_z the total widths of the heads, o the outer
/// width:
///   row attention     2m + 2z + z heads + 4 m h_m + h_m + h_m m + m
///   column attention  2m + 4 m h_m + h_m + h_m m + m
///   transitions       2m + 8m^2 + 5m, 2z + 8z^2 + 5z
///   outer product     2m + 2(mo + o) + o^2 z + z
///   multiplications   2 (4z + 6(z^2 + z))
///   attentions        2 (2z + z heads + 4 z h_z + h_z + h_z z + z)
inline std::int64_t evoformer_block_parameters(const EvoformerConfig& c) {
  const std::int64_t m = c.msa_width;
  const std::int64_t z = c.pair_width;
  const std::int64_t o = c.outer_width;
  const auto attention = [&](std::int64_t width, std::int64_t heads) {
    const std::int64_t inner = heads * c.head_width;
    return 2 * width + 4 * width * inner + inner + inner * width + width;
  };
  const std::int64_t row_bias = 2 * z + z * c.msa_heads;
  const std::int64_t transitions = 7 * m + 8 * m * m + 7 * z + 8 * z * z;
  const std::int64_t outer_product = 2 * m + 2 * (m * o + o) + o * o * z + z;
  const std::int64_t multiplication = 4 * z + 6 * (z * z + z);
  return 2 * attention(m, c.msa_heads) + row_bias + transitions + outer_product +
         2 * multiplication + 2 * (attention(z, c.pair_heads) + z * c.pair_heads);
}

}  // namespace stratagem::model

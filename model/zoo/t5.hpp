// T5: an encoder that sees all of its tokens, and a decoder that reads what the encoder returns.
#pragma once

#include <cstdint>

#include "model/graph.hpp"

namespace stratagem::model {

/// What an MLP does between its matrices. Gated: T5 1.1.
enum class T5Mlp : std::uint8_t { relu, gelu, gated_gelu };

/// As published, or as Megatron-LM has it: layer norms, biases of linear layers and of the logits,
/// learned positions, scores that are scaled, and dropout neither within MLPs nor after the final
/// norms.
enum class T5Kind : std::uint8_t { published, megatron };

struct T5Variant {
  T5Kind kind = T5Kind::published;
  T5Mlp mlp = T5Mlp::relu;
  friend bool operator==(const T5Variant&, const T5Variant&) = default;
};

/// `batch` is the micro-batch over all data-parallel ranks together; sizes are of the whole model.
struct T5Config {
  std::int64_t layers = 0;  ///< of the encoder
  std::int64_t decoder_layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t head_width = 0;  ///< 0: hidden / heads
  std::int64_t intermediate = 0;
  std::int64_t sequence = 0;  ///< of the encoder
  std::int64_t decoder_sequence = 0;
  std::int64_t vocabulary = 0;  ///< as padded for the run
  std::int64_t batch = 1;
  DataType type = DataType::bf16;
  T5Variant variant = {};
  bool tied = true;     ///< logits use the word embedding; else a table of their own (T5 1.1)
  bool dropout = true;  ///< where T5 has it: see t5()
  std::int64_t bias_buckets = 32;  ///< of distances, see kernels/relative_bias.hpp; 0: no biases.
                                   ///< Megatron-LM's has none
  friend bool operator==(const T5Config&, const T5Config&) = default;
};

/// One segment for the encoder's embedding, one per layer of encoder and decoder, one for the final
/// norm, logits and loss. An encoder's layer:
///   x = x + attention(norm(x));  x = x + mlp(norm(x))
/// a decoder's:
///   y = y + causal attention(norm(y));  y = y + attention(norm(y), e);  y = y + mlp(norm(y))
/// with e the encoder's final result, without biases, RMS norms, scores that nothing scales, and
///   mlp(x) = W_2 relu(W_1 x),  or gated  W_2 (gelu(W_g x) * W_1 x).
/// Dropout on embeddings, attention probabilities, within MLPs, before residual sums and after the
/// final norms. The last encoder layer also has the encoder's final norm, the first decoder layer
/// the decoder's embedding, of the encoder's table. Scores of the two self-attentions get a learned
/// bias by head and distance. Source: Raffel et al., J. Machine Learning Research 21(140), 2020,
/// arXiv:1910.10683, section 2.1; gated and untied: Shazeer, arXiv:2002.05202. Megatron-LM's:
/// core/models/T5/t5_model.py, whose table of positions is as long as the longer sequence.
///
/// What differs from the published model:
///   every layer looks up its stack's biases again, where T5 does so once and keeps them for all;
///   logits of a tied table are not multiplied by 1 / sqrt(hidden);
///   queries, keys and values of a self-attention are one matrix, keys and values of a
///   cross-attention another (the same numbers);
///   sequences are full: no padding is masked;
///   every decoder layer but the last hands the encoder's result on to the next as a copy of its
///   own (one reader besides its own segment is what plans know of), so that it counts once for
///   every decoder layer in memory, where frameworks keep it once; no time is counted for that.
Graph t5(const T5Config& config);

}  // namespace stratagem::model

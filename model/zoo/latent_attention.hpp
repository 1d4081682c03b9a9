// Queries, keys and values that are made of narrow vectors, of which keys and values share one.
#pragma once

#include "base/json_reader.hpp"
#include "base/options.hpp"
#include "model/builder.hpp"
#include "model/zoo/fused_attention.hpp"
#include "model/zoo/transformer_config.hpp"

namespace stratagem::model {

/// For x of shape (batch, sequence, hidden), head by head:
///   c_q = norm(W_dq x);  [q_c, q_r] = W_uq c_q;  q = [q_c, rotary(q_r)]
///   [c, r] = W_dkv x;  [k_c, v] = W_ukv norm(c);  k = [k_c, rotary(r)]
/// where all heads share r. They lie as the core of the attention wants them: in the rows of
/// tokens where it is fused. The narrow vectors are computed by every tensor rank. What follows
/// them, their norms first, is named `attention.up.*`: Megatron-Core's `mla_up_proj`. Source:
/// DeepSeek-AI, DeepSeek-V2, arXiv:2405.04434, section 2.1.
CoreInputs latent_heads(Builder& build, const TransformerConfig& config, TensorId x);

/// The key "latent" of a configuration.
template <typename Config, typename Place>
Option<Config> latent_option(Place place) {
  const auto size = whole(1, 10'000'000);
  return {"latent", place,
          object_of<Latent>(
              {{"key_rank", &Latent::key_rank, size, "width of what keys and values are made of",
                must_be_there},
               {"rotary", &Latent::rotary, size,
                "elements of queries and keys, besides those of `head_width`, that are turned by "
                "position; all heads share those of keys",
                must_be_there},
               {"query_rank", &Latent::query_rank, size, "width of what queries are made of",
                "none: they are made of the token"},
               {"values", &Latent::values, size, "width of a head's values", "`head_width`"}}),
          "latent attention, as DeepSeek's: queries, keys and values are products of narrow "
          "vectors",
          "none"};
}

/// Refuses beside it what it has no place for.
void check_latent(const JsonReader& config);

}  // namespace stratagem::model

// Self-attention between its matrices: heads, positions in them, scores, what is left of the
// values.
#pragma once

#include <functional>
#include <string>

#include "model/builder.hpp"
#include "model/zoo/transformer_config.hpp"

namespace stratagem::model {

/// What a core in parts adds to its scores before their softmax; `dims` names those of scores. It
/// returns the sum.
using OnScores = std::function<TensorId(TensorId scores, const std::string& dims)>;

/// W_o attention(W_qkv x), of (batch, sequence, hidden), of a layer counted from 0. Queries, keys
/// and values are one matrix, or latent (latent_attention.hpp).
/// The core is one kernel, or in parts: scores, softmax, dropout, context.
TensorId self_attention(Builder& build, const TransformerConfig& config, TensorId x,
                        std::int64_t layer, const OnScores& on_scores = {});

}  // namespace stratagem::model

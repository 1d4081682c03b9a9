// Transformers: what all families of them have in common.
#pragma once

#include <string>

#include "model/builder.hpp"
#include "model/zoo/transformer_config.hpp"

namespace stratagem::model {

/// What the embeddings leave: rows of the table of words, with those of learned positions added.
struct Embedded {
  TensorId words;  ///< the table
  TensorId rows;   ///< (batch, sequence, hidden)
};
Embedded embedded(Builder& build, const TransformerConfig& config);

/// Drops elements of (batch, sequence, hidden), if the model drops any.
TensorId dropped(Builder& build, const TransformerConfig& config, const std::string& name,
                 TensorId x);

/// Adds one segment for each layer:
///   x = x + dropout(W_o attention(norm(x)));  x = x + dropout(mlp(norm(x)))
/// or, with norms after the sums, x = norm(x + dropout(W_o attention(x))) and likewise for the MLP.
/// Queries, keys and values are one matrix. With a prefix every layer has trained keys and values
/// before those of the tokens, without rotary positions.
TensorId layers(Builder& build, const TransformerConfig& config, TensorId x);

/// The product of rows, whose dimensions are `rows` ("b s"), with a table of words.
TensorId logits(Builder& build, TensorId x, TensorId words, const std::string& rows = "b s");
/// Logits to which a trained bias of every word is added.
TensorId with_bias(Builder& build, TensorId logits);

}  // namespace stratagem::model

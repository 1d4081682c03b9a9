// Decoder-only transformers: GPT, Llama and what lies between them.
#pragma once

#include <string>

#include "model/graph.hpp"
#include "model/zoo/decoder_task.hpp"
#include "model/zoo/transformer.hpp"

namespace stratagem::model {

/// What follows the layers.
struct Head {
  bool tied = false;        ///< logits use the word embedding; else a table of their own
  bool fused_loss = false;  ///< see fused_cross_entropy
  DecoderTask task = {};
};

/// A graph of that name: one segment for the embeddings, one per layer, one for the final norm,
/// logits and loss. The loss is the cross-entropy of b*s tokens, in fp32. With a prefix nothing
/// else is trained, and attention is not fused. A head of another use has what scalar_head.hpp
/// says; with a cache there is no loss, but the probabilities of the word after the last token.
Graph decoder(const std::string& name, const TransformerConfig& config, const Head& head);

}  // namespace stratagem::model

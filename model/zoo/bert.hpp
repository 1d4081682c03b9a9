// BERT: an encoder whose tokens see all others, trained to fill in words and, beside that, to tell
// whether one sentence follows another.
#pragma once

#include <cstdint>

#include "model/graph.hpp"
#include "model/zoo/transformer_config.hpp"

namespace stratagem::model {

/// `batch` is the micro-batch over all data-parallel ranks together; sizes are of the whole model.
struct BertConfig {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;  ///< as padded for the run
  std::int64_t batch = 1;
  DataType type = DataType::fp16;
  std::int64_t intermediate = 0;       ///< width of the MLP; 0: four times the hidden size
  NormPlace norms = NormPlace::after;  ///< as published; before: as in Megatron-LM
  bool dropout = true;                 ///< after embeddings, on probabilities, before sums
  bool fused_attention = false;        ///< its core as one kernel, see fused_attention.hpp
  bool tied = true;                    ///< logits use the word embedding; else a table of their own
  bool next_sentence = true;           ///< the pooler and its loss
  friend bool operator==(const BertConfig&, const BertConfig&) = default;
};

/// Layers as transformer.hpp has them, between
///   x = dropout(norm(words + positions + token types))
/// (with norms before: without this norm, and with one behind the last layer) and two heads:
///   logits = words norm(gelu(W x + b)) + b,  every token's loss is its cross-entropy;
///   the first token's tanh(W x + b) is told from two classes, whose loss is added to that.
/// Without this second head there are no token types either.
/// Every token has a label: BERT's loss is of the 15 % that were masked, for which all logits are
/// computed, too. Padding, which a mask hides, is not modelled. Sources: Devlin et al., BERT,
/// arXiv:1810.04805, section 3; Megatron-LM, core/models/bert/bert_model.py.
Graph bert(const BertConfig& config);

}  // namespace stratagem::model

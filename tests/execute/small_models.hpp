// Small models that several tests train.
#pragma once

#include "model/zoo/t5.hpp"

namespace stratagem::execute {

/// Two layers of an encoder, two of a decoder, sequences of different lengths.
inline model::T5Config small_t5() {
  model::T5Config config;
  config.layers = config.decoder_layers = 2;
  config.hidden = 16;
  config.heads = 4;
  config.intermediate = 24;
  config.sequence = 12;
  config.decoder_sequence = 8;
  config.vocabulary = 24;
  config.batch = 4;
  config.bias_buckets = 8;
  return config;
}

}  // namespace stratagem::execute

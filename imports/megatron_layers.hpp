// What Megatron-LM's arguments say of the layers of a GPT: heads of attention, and experts.
#pragma once

#include "imports/format.hpp"
#include "imports/said.hpp"

namespace stratagem::imports {

/// What the layers of a model may have.
struct LayerKind {
  bool llama = false;            ///< of the family `llama`, which has latent attention
  bool gated = false;            ///< MLPs are SwiGLUs
  bool biases = false;           ///< of linear layers
  bool fused_attention = false;  ///< which windows and sinks want
};

/// Sets keys of the model: how heads share keys, how wide they are, latent attention, windows.
void read_megatron_heads(const LayerKind& kind, Said& words, Settings& settings);
/// Sets keys of the model, and how many ranks divide experts.
void read_megatron_experts(const LayerKind& kind, Said& words, Settings& settings);

}  // namespace stratagem::imports

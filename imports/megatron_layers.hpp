// What Megatron-LM's arguments say of the layers of a GPT: heads of attention, and experts.
#pragma once

#include "imports/format.hpp"
#include "imports/said.hpp"

namespace stratagem::imports {

/// Sets keys of the model: how heads share keys, how wide they are, latent attention, windows.
void read_megatron_heads(Said& words, Settings& settings);
/// Sets keys of the model, and how many ranks divide experts.
void read_megatron_experts(Said& words, Settings& settings);

}  // namespace stratagem::imports

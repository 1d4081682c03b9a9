// What Megatron-LM's arguments say of pipeline stages with unequally many layers.
#pragma once

#include "imports/format.hpp"
#include "imports/said.hpp"

namespace stratagem::imports {

/// Sets "layers_per_stage" of the strategy, if some argument asks for unequal stages. The first or
/// the last rank has so many layers, or embedding and loss count as a layer each. All other ranks
/// have equally many, and of a rank all chunks. Source: Megatron-LM,
/// core/transformer/transformer_block.py, get_num_layers_to_build.
void read_uneven_stages(Said& words, int ranks, int chunks, int layers, Settings& settings);

}  // namespace stratagem::imports

// What Megatron-LM's arguments say of the network.
#pragma once

#include <string>

#include "imports/format.hpp"
#include "imports/said.hpp"

namespace stratagem::imports {

/// Sets keys of the model, and the expert degree; says what has no key. `text` is the script, whose
/// `pretrain_NAME.py` tells the family. Proposes stacks.
void read_megatron_model(const std::string& text, Said& words, Settings& settings);

}  // namespace stratagem::imports

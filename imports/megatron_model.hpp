// What Megatron-LM's arguments say of the network.
#pragma once

#include <string>

#include "imports/format.hpp"
#include "imports/said.hpp"

namespace stratagem::imports {

/// Sets keys of the model, and the expert degree; says what has no key. `program` tells the family:
/// "gpt" of pretrain_gpt.py, "" where it is not known. Proposes stacks.
void read_megatron_model(const std::string& program, Said& words, Settings& settings);

}  // namespace stratagem::imports

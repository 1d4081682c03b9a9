// Megatron-LM's arguments, whoever wrote them: its own scripts, or files of programs that are built
// on it and call the same things otherwise.
#pragma once

#include <string>

#include "imports/format.hpp"
#include "imports/said.hpp"

namespace stratagem::imports {

/// What arguments without their "--" say of a run. `program` is "gpt" of pretrain_gpt.py, "" where
/// that is not known. Without a number of layers and a hidden size they say nothing of the network
/// but the length of its samples, and no default of Megatron-LM's counts.
Settings read_megatron(const std::string& program, Said words);

}  // namespace stratagem::imports

// Experts that no rank divides.
#pragma once

#include "imports/format.hpp"

namespace stratagem::imports {

/// With one tensor rank for each expert, tensor ranks are among the `ranks` that share out experts:
/// data ranks are the others. `gated`: the operators of an expert's MLP are those with a gate.
void share_out_experts(bool gated, int ranks, int tensor, Settings& settings);

}  // namespace stratagem::imports

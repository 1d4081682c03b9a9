// Checks facts of a stack against the model of a run.
#pragma once

#include <string>

#include "cost/stack.hpp"
#include "model/graph.hpp"

namespace stratagem::study {

/// Throws InputError that names the stack's `file`, if a rule of held inputs (cost::HeldInputs) can
/// never act: if in the model the operator that releases the input always comes before the one that
/// reads it.
void check_held_inputs(const cost::Stack& stack, const model::Graph& graph,
                       const std::string& file);

}  // namespace stratagem::study

// Facts of a stack held against the model of a run.
#pragma once

#include <string>

#include "cost/stack.hpp"
#include "model/graph.hpp"

namespace stratagem::search {

/// Throws InputError, naming the stack's `file`, for inputs that are held until an operator which, wherever the
/// model has both, stands in front of the one that reads them: that can never act.
void check_held_inputs(const cost::Stack& stack, const model::Graph& graph,
                       const std::string& file);

}  // namespace stratagem::search

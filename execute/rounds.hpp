// Which iteration a round of a program runs each call for.
#pragma once

#include <vector>

#include "model/graph.hpp"
#include "program/program.hpp"

namespace stratagem::execute {

/// By call: round r runs it for iteration r - lag. That is the program's word, but for steps that
/// come before all cells, which are delayed: they are of the iteration before, and so is what moves
/// the weights that they make.
std::vector<int> lags_of(const program::Program& program, const model::Graph& graph,
                         const program::Sequence& sequence);

/// Do its steps come before all cells?
bool delays_steps(const program::Program& program, const program::Sequence& sequence);

}  // namespace stratagem::execute

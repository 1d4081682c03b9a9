// op-trans that divides runs of operators into parts on the same devices.
#pragma once

#include <vector>

#include "model/divide.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::strategies {

/// Rewrites a plan's graph to `graph`, the one that the plan was given, with these runs of it
/// divided. Returns the parts' operators, by division and part. Throws InputError where a dimension
/// does not divide evenly.
std::vector<std::vector<std::vector<model::OpId>>> colocate(
    Plan& plan, const model::Graph& graph, const std::vector<model::Division>& divisions);

}  // namespace stratagem::strategies

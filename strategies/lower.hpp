// From a plan to a Program: finds every communication that the plan's splits make necessary.
#pragma once

#include "cost/stack.hpp"
#include "strategies/plan.hpp"
#include "strategies/program.hpp"

namespace stratagem::strategies {

/// Lowers a plan: shapes every operator's part, connects producers to consumers by the cheapest
/// collectives, reduces weight gradients that are partial sums, orders the cells of every stage,
/// and states when every buffer is born and dies. `stack` says how many kernels an operator becomes
/// and what an optimizer step moves.
///
/// Throws InputError if the orders contradict each other (the message prints one cycle) or leave
/// two cells of a stage unordered, and for plans that it cannot lower yet, naming them:
///   operators of one stage must stand on the same devices, in equal parts;
///   stages must have equal grids, and a tensor may cross only to the next stage;
///   tensors that do not lie in a uniform layout (equal parts along the axes of the grid) are
///   refused.
/// What it makes has passed check().
Program lower(const Plan& plan, const cost::Stack& stack);

}  // namespace stratagem::strategies

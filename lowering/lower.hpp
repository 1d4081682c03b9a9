// From a plan to a Program: finds every communication that the plan's splits make necessary.
#pragma once

#include "cost/optimizer.hpp"
#include "cost/stack.hpp"
#include "lowering/neighbours.hpp"
#include "program/program.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// Lowers a plan: shapes every operator's part, connects producers to consumers by the cheapest
/// collectives, reduces weight gradients that are partial sums, orders the cells of every stage,
/// and states when every buffer is allocated and freed. `stack` says how many kernels an operator
/// becomes and what a framework adds to an optimizer step, `training` what weights are kept as and
/// what that step needs; the plan's graph is in the types of its precision. `neighbours` decide
/// which stages hold what others lend.
///
/// Throws InputError if the orders contradict each other (the message prints one cycle) or leave
/// two cells of a stage unordered, and for plans that cannot be lowered, naming them:
///   every part of an operator stands on a device of its own, and no device below the last is idle;
///   tensors divide into equal parts, unless the plan says that parts may be uneven;
///   a device sees one part of a parameter, and two devices equal parts or such that share nothing;
///   an activation is read by one segment besides its own;
///   where ranks divide a step, its optimizer keeps something of every element, not of rows;
///   weights are whole where linear layers multiply in another type;
///   their program is estimated to take at most 2.4 GB to simulate, see size.hpp;
///   copies of a stage whose operators stand on different devices are placed relative to each other
///   as its operators are, and such a stage evicts nothing.
/// What it makes has passed check().
program::Program lower(const strategies::Plan& plan, const cost::Stack& stack,
                       const cost::Training& training = {}, const Neighbours& neighbours = {});

}  // namespace stratagem::lowering

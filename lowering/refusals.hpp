// Refuses plans that the lowering cannot compile, before the passes that would meet them.
#pragma once

#include "cost/optimizer.hpp"
#include "cost/stack.hpp"
#include "lowering/stages/stages.hpp"
#include "lowering/weights/parameters.hpp"
#include "strategies/plan/plan.hpp"

namespace stratagem::lowering {

/// Throws InputError for what the stages alone show: weights divided, gathered, cast, swapped or
/// recomputed where the stages of the plan do not allow it.
void refuse_before_blocks(const strategies::Plan& plan, const Stages& stages,
                          const cost::Stack& stack, const cost::Precision& precision);

/// Throws InputError for what only the places of parameters show: steps on the host of a parameter
/// that several stages hold, and divided steps of an optimizer that keeps sums of rows and columns.
void refuse_before_sequences(const strategies::Plan& plan, const Stages& stages,
                             const Parameters& parameters, const cost::Training& training);

}  // namespace stratagem::lowering

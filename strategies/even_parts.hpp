// What the lowering does not take yet: parts of unequal sizes.
#pragma once

#include "strategies/plan.hpp"

namespace stratagem::strategies {

/// Throws InputError for an operator with a dimension that does not divide into equal parts.
void check_even_parts(const Plan& plan);

}  // namespace stratagem::strategies

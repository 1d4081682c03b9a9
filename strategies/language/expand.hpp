// The op-orders that a rule stands for.
#pragma once

#include <vector>

#include "strategies/plan/order_rule.hpp"

namespace stratagem::strategies {

/// All instances, without duplicates, in the order of the variables' values: those that are a whole
/// coordinate somewhere change slowest, then in the order in which they first appear. Throws
/// InputError at `rule.path` for text that is not of the language, names that stand for nothing,
/// cells before themselves, cells that exist in no plan whatever the sizes, variables whose values
/// no coordinate tells, and more than 10 million combinations of values.
std::vector<placement::Order> expand(const OrderRule& rule, const Extent& extent);

}  // namespace stratagem::strategies

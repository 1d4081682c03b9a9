// Rules of extra states: what a framework keeps of every parameter besides.
#pragma once

#include <vector>

#include "cost/stack.hpp"

namespace stratagem::lowering {

/// Bytes per parameter of all that is kept with these.
std::vector<Bytes> bytes_kept_with(const cost::Stack& stack, cost::ExtraState::With what);

}  // namespace stratagem::lowering

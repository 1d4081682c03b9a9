// Rules of the random generator: when a framework saves or restores its state.
#pragma once

#include <optional>
#include <string>

#include "cost/stack.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// The copies at a moment, such as "after recomputation", each of which the host waits for; none
/// where the stack makes none.
std::optional<program::Task> random_state_copies(const cost::Stack& stack, const std::string& when);

}  // namespace stratagem::lowering

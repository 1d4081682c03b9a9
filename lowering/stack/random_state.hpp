// Rules of the random generator: when a framework saves or restores its state.
#pragma once

#include <optional>
#include <string>

#include "cost/stack.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// The copies at a moment, such as "after recomputation", each of which the host waits for; none
/// where the stack makes none.
inline std::optional<program::Task> random_state_copies(const cost::Stack& stack,
                                                        const std::string& when) {
  const auto rule = cost::rule_about(stack, &cost::RandomStateCopies::when, when);
  if (rule.when.empty()) return std::nullopt;
  cost::Kernel kernel;
  kernel.kind = cost::KernelKind::host_copy;
  kernel.traffic = rule.copies * rule.size;
  kernel.launches = rule.copies;
  program::Task task{};
  task.name = "random state";
  task.work = kernel;
  task.synchronizations = rule.copies;
  return task;
}

}  // namespace stratagem::lowering

// Makes the task of the copies between device and host.
#include "lowering/stack/random_state.hpp"

namespace stratagem::lowering {

std::optional<program::Task> random_state_copies(const cost::Stack& stack,
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

// Looks up a kind of collective and what it is of.
#include "lowering/stack/collectives_beside.hpp"

namespace stratagem::lowering {

std::optional<model::Pass> beside(const cost::Stack& stack, cost::CollectiveKind kind,
                                  bool of_gradients) {
  for (const auto& rule : cost::rules_of<cost::CollectiveBeside>(stack)) {
    if (rule.kind == kind && rule.of_gradients == of_gradients) return rule.beside;
  }
  return std::nullopt;
}

}  // namespace stratagem::lowering

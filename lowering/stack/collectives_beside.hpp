// Rules of collectives: beside which computation one runs.
#pragma once

#include <optional>

#include "cost/stack.hpp"

namespace stratagem::lowering {

/// The pass whose kernels a collective runs beside; nullopt if it waits for all computations.
inline std::optional<model::Pass> beside(const cost::Stack& stack, cost::CollectiveKind kind,
                                         bool of_gradients) {
  for (const auto& rule : cost::rules_of<cost::CollectiveBeside>(stack)) {
    if (rule.kind == kind && rule.of_gradients == of_gradients) return rule.beside;
  }
  return std::nullopt;
}

}  // namespace stratagem::lowering

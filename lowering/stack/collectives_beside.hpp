// Rules of collectives: beside which computation one runs.
#pragma once

#include <optional>

#include "cost/stack.hpp"

namespace stratagem::lowering {

/// The pass whose kernels a collective runs beside; nullopt if it waits for all computations.
std::optional<model::Pass> beside(const cost::Stack& stack, cost::CollectiveKind kind,
                                  bool of_gradients);

}  // namespace stratagem::lowering

// Looks at every axis that may be uneven, for messages that name the operator.
#include "strategies/even_parts.hpp"

#include <string>

#include "base/input_error.hpp"

namespace stratagem::strategies {

void check_even_parts(const Plan& plan) {
  for (const model::OpId id : plan.operators()) {
    const model::Operator& op = plan.graph().operators[id];
    const Plan::Placement& placement = plan.placement(id);
    for (std::size_t i = 0; i < placement.axes.size(); ++i) {
      if (!placement.uneven[i] || placement.dims[i].empty()) continue;
      std::int64_t parts = 1;
      for (std::size_t k = 0; k < placement.axes.size(); ++k)
        parts *= placement.dims[k] == placement.dims[i] ? placement.axes[k].size : 1;
      const std::int64_t size = size_of_dimension(plan.graph(), op, placement.dims[i]);
      if (size % parts == 0) continue;
      throw InputError("", "",
                       "dimension " + placement.dims[i] + " of operator " + op.name +
                           " to divide into " + std::to_string(parts) +
                           " equal parts (uneven ones are not lowered yet)",
                       std::to_string(size));
    }
  }
}

}  // namespace stratagem::strategies

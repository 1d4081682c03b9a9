// Follows from what the plan divides, and from where it steps.
#include "strategies/lower/waiting_gradients.hpp"

namespace stratagem::strategies {

bool reduces_each_cell(const Plan& plan) {
  return plan.steps_on_host || plan.shards.divides(WeightShards::Of::gradients);
}

Bytes own_bytes(const Plan& plan, program::Category category, Bytes bytes) {
  return category == program::Category::whole_gradients && plan.gradients.buffers > 0 ? Bytes{}
                                                                                      : bytes;
}

}  // namespace stratagem::strategies

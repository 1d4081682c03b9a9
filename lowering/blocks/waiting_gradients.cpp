// Where steps run on the host, or gradients are divided, no gradient waits for the last
// micro-batch.
#include "lowering/blocks/waiting_gradients.hpp"

namespace stratagem::lowering {

bool reduces_each_cell(const strategies::Plan& plan) {
  return plan.steps.on_host || !plan.divided(strategies::Keep::What::gradients).empty();
}

Bytes own_bytes(const strategies::Plan& plan, program::Category category, Bytes bytes) {
  return category == program::Category::whole_gradients && plan.gradients.buffers > 0 ? Bytes{}
                                                                                      : bytes;
}

}  // namespace stratagem::lowering

// Looks up what is kept with the states, the gradients or the steps of parameters.
#include "lowering/stack/extra_states.hpp"

namespace stratagem::lowering {

std::vector<Bytes> bytes_kept_with(const cost::Stack& stack, cost::ExtraState::With what) {
  std::vector<Bytes> bytes;
  for (const cost::ExtraState& state : cost::rules_of<cost::ExtraState>(stack)) {
    if (state.with == what) bytes.push_back(state.bytes);
  }
  return bytes;
}

}  // namespace stratagem::lowering

// Rules of extra states: what a framework keeps of every parameter besides.
#pragma once

#include <vector>

#include "cost/stack.hpp"

namespace stratagem::lowering {

/// Bytes per parameter of all that is kept with these.
inline std::vector<Bytes> bytes_kept_with(const cost::Stack& stack, cost::ExtraState::With what) {
  std::vector<Bytes> bytes;
  for (const cost::ExtraState& state : cost::rules_of<cost::ExtraState>(stack)) {
    if (state.with == what) bytes.push_back(state.bytes);
  }
  return bytes;
}

}  // namespace stratagem::lowering

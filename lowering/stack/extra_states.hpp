// Rules of extra states: what a framework keeps of every parameter besides.
#pragma once

#include <vector>

#include "cost/precision.hpp"
#include "cost/stack.hpp"

namespace stratagem::lowering {

/// Bytes per parameter of all that is kept with these.
inline std::vector<Bytes> bytes_kept_with(const cost::Stack& stack,
                                          const cost::Precision& precision,
                                          cost::ExtraState::With what) {
  std::vector<Bytes> bytes;
  for (const cost::ExtraState& state : cost::rules_of<cost::ExtraState>(stack)) {
    const bool there = state.copies_gradients && model::size_of(precision.gradients) >= state.bytes;
    if (state.with == what && !there) bytes.push_back(state.bytes);
  }
  return bytes;
}

}  // namespace stratagem::lowering

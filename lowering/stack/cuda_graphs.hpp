// Rules of CUDA graphs: operators that the host does not launch one by one.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/pattern.hpp"
#include "cost/stack.hpp"

namespace stratagem::lowering {

/// Is an operator of this name within its layer, or that it is a gradient of, part of a graph?
inline bool in_cuda_graph(const cost::Stack& stack, std::string_view name) {
  return std::ranges::any_of(cost::rules_of<cost::CudaGraph>(stack), [&](const auto& rule) {
    return std::ranges::any_of(rule.operators,
                               [&](const std::string& pattern) { return matches(name, pattern); });
  });
}

}  // namespace stratagem::lowering

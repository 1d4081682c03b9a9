// Rules of fusions: operators that run as one kernel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cost/stack.hpp"
#include "lowering/stack/kernels.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::lowering {

/// How many of the next operators may run as one kernel by their kinds: the lengths of the fusions
/// that they begin, the longest first.
inline std::vector<std::size_t> fused_lengths(const model::Graph& graph, const cost::Stack& stack,
                                              std::span<const model::OpId> ops) {
  std::vector<std::size_t> lengths;
  for (const auto& [kinds, kernel] : cost::rules_of<cost::Fusion>(stack)) {
    const auto matches = [&](model::OpId id, const std::string& kind) {
      return stack_name(graph.operators[id]) == kind;
    };
    if (kinds.size() <= ops.size() && std::ranges::equal(ops.first(kinds.size()), kinds, matches))
      lengths.push_back(kinds.size());
  }
  std::ranges::sort(lengths, std::greater<>());
  return lengths;
}

/// Whose kernel these operators run as, if they are fused: its place among them.
inline std::size_t kernel_of_fused(const cost::Stack& stack,
                                   const std::vector<std::string>& kinds) {
  const std::string kernel = cost::rule_about(stack, &cost::Fusion::kinds, kinds).kernel;
  if (kernel.empty()) return kinds.size() - 1;
  return static_cast<std::size_t>(std::ranges::find(kinds, kernel) - kinds.begin());
}

}  // namespace stratagem::lowering

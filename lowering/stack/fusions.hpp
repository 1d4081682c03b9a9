// Rules of fusions: operators that run as one kernel.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cost/stack.hpp"
#include "model/graph.hpp"

namespace stratagem::lowering {

/// How many of the next operators may run as one kernel by their kinds: the lengths of the fusions
/// that they begin, the longest first.
std::vector<std::size_t> fused_lengths(const model::Graph& graph, const cost::Stack& stack,
                                       std::span<const model::OpId> ops);

}  // namespace stratagem::lowering

// Full recomputation: keep the input of every layer, run its forward pass again before its backward
// pass.
#include "strategies/all.hpp"

namespace stratagem::strategies {

/// An op-trans of every segment between the first and the last: {op} becomes {op, op again}, the
/// second ordered before the operator's backward pass. Embeddings and head keep what they need.
/// Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174.
void recompute(Plan& plan, const Options& options) {
  if (options.recompute == "none") return;
  const auto segments = static_cast<int>(plan.graph().segments.size());
  for (int segment = 1; segment + 1 < segments; ++segment) plan.recompute(segment);
}

}  // namespace stratagem::strategies

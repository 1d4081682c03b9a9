// Swap: activations of layers wait in the memory of the host.
#include <algorithm>
#include <string>

#include "base/input_error.hpp"
#include "strategies/all.hpp"

namespace stratagem::strategies {

/// An op-trans of the first layers (segments between the first and the last): what a layer's forward
/// pass keeps is copied to the host after it, and back before its backward pass, while other layers
/// run. Source: Rhu et al., vDNN, MICRO 2016, arXiv:1602.08124.
void swap_activations(Plan& plan, const Options& options) {
  const auto segments = static_cast<int>(plan.graph().segments.size());
  if (options.swap.layers > std::max(segments - 2, 0)) {
    throw InputError("", "", "at most the model's " + std::to_string(segments - 2) + " layers",
                     std::to_string(options.swap.layers));
  }
  for (int segment = 1; segment + 1 < segments && segment <= options.swap.layers; ++segment)
    plan.swap.segments.push_back(segment);
  plan.swap.prefetch = plan.swap.segments.empty() ? 0 : options.swap.prefetch;
}

}  // namespace stratagem::strategies

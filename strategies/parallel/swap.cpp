// Swap: activations of layers wait in the memory of the host, or of other GPUs.
#include <algorithm>
#include <string>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

int stage_of(const Plan& plan, int segment) {
  const auto has = [&](const std::vector<int>& stage) {
    return std::ranges::count(stage, segment) > 0;
  };
  return static_cast<int>(std::ranges::find_if(plan.stages, has) - plan.stages.begin());
}

/// Stage s lends to S-1-s, which has as much less to keep as s has more: pairs as BPipe's.
int peer_of(const Plan& plan, int stage) {
  const int peer = static_cast<int>(plan.stages.size()) - 1 - stage;
  const auto device = [&](int of) {
    const model::Segment& segment = plan.graph().segments[plan.stages[of].front()];
    return plan.placement(segment.forward.front()).first_devices.front();
  };
  if (device(stage) == device(peer)) {
    throw InputError(
        "", "/to", "pipeline ranks in pairs, of which one takes in what the other swaps",
        "stage " + std::to_string(stage) + " on the devices of stage " + std::to_string(peer));
  }
  return peer;
}

}  // namespace

/// An op-trans of the first layers (segments between the first and the last): what a layer's forward
/// pass keeps is copied to the host after it, and back before its backward pass, while other layers
/// run. Source: Rhu et al., vDNN, MICRO 2016, arXiv:1602.08124. Or to the GPUs of the stage with which
/// its own makes a pair: Zhou et al., MPress, HPCA 2023, with pairs as in Kim et al., BPipe, ICML 2023.
void swap_activations(Plan& plan, const Options& options) {
  const auto segments = static_cast<int>(plan.graph().segments.size());
  if (options.swap.layers > std::max(segments - 2, 0)) {
    throw InputError("", "", "at most the model's " + std::to_string(segments - 2) + " layers",
                     std::to_string(options.swap.layers));
  }
  for (int segment = 1; segment + 1 < segments && segment <= options.swap.layers; ++segment) {
    plan.swap.segments.push_back(segment);
    if (options.swap.to_peer) plan.swap.peers[segment] = peer_of(plan, stage_of(plan, segment));
  }
  plan.swap.prefetch = plan.swap.segments.empty() ? 0 : options.swap.prefetch;
}

}  // namespace stratagem::strategies

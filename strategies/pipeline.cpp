// Pipeline parallelism: consecutive layers form stages on disjoint devices.
#include <algorithm>

#include "base/input_error.hpp"
#include "strategies/all.hpp"

namespace stratagem::strategies {

/// op-assign of every operator to the devices of its stage. The layers (all segments but the first
/// and the last) are divided evenly; the first stage also has the first segment (embeddings), the
/// last stage the last (head). Source: Huang et al., GPipe, NeurIPS 2019; Narayanan et al.,
/// arXiv:2104.04473, section 2.2.
void pipeline(Plan& plan, const Options& options) {
  const int stages = options.pipeline;
  if (stages == 1) return;
  const auto segments = static_cast<int>(plan.graph().segments.size());
  const int layers = segments - 2;
  if (layers % stages != 0) {
    throw InputError("", "", "a divisor of the model's " + std::to_string(layers) + " layers",
                     std::to_string(stages));
  }
  plan.stages.assign(stages, {});
  for (int segment = 0; segment < segments; ++segment) {
    const int layer = std::clamp(segment - 1, 0, layers - 1);
    const int stage = layer / (layers / stages);
    plan.stages[stage].push_back(segment);
    for (const model::OpId op : plan.graph().segments[segment].forward) {
      plan.assign(op, stage * (options.devices() / stages));
    }
  }
}

}  // namespace stratagem::strategies

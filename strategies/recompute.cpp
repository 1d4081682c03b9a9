// Recomputation: run forward operators again in the backward pass rather than keep what they
// computed.
#include <algorithm>

#include "model/attention_core.hpp"
#include "strategies/all.hpp"

namespace stratagem::strategies {
namespace {

bool in_a_group(const Plan& plan, const std::vector<model::OpId>& ops) {
  return std::ranges::any_of(ops, [&](model::OpId op) { return plan.group_of(op) >= 0; });
}

}  // namespace

/// An op-trans of every segment between the first and the last: {op} becomes {op, op again}, the
/// second ordered before the operator's backward pass. Embeddings and head keep what they need.
/// "full": all operators of a layer as one group. Source: Chen et al., Training Deep Nets with
/// Sublinear Memory Cost, arXiv:1604.06174. "selective": the core of every attention, few FLOPs for
/// many bytes. Source: Korthikanti et al., arXiv:2205.05198, section 5. What another strategy has
/// put into groups stays there; a layer with such groups gets none from "full".
void recompute(Plan& plan, const Options& options) {
  const auto segments = static_cast<int>(plan.graph().segments.size());
  for (int index = 1; index + 1 < segments; ++index) {
    const model::Segment& segment = plan.graph().segments[index];
    if (options.recompute == "full" && !in_a_group(plan, segment.forward))
      plan.recompute(segment.forward);
    if (options.recompute != "selective") continue;
    for (const std::vector<model::OpId>& core : model::attention_cores(plan.graph(), segment)) {
      if (!in_a_group(plan, core)) plan.recompute(core);
    }
  }
}

}  // namespace stratagem::strategies

// Finds the slot that an operator writes in the forward calls of its segment.
#include "lowering/updates/kept_outputs.hpp"

#include <algorithm>
#include <map>

#include "model/operator_kinds.hpp"

namespace stratagem::lowering {
namespace {

/// What is at a place of a block's segment.
Bytes at_place(const program::Block& block, int place) {
  Bytes most;
  for (const program::Slot& slot : block.slots) {
    if (slot.tensor == place) most = std::max(most, slot.bytes);
  }
  return most;
}

/// What the forward passes of a sequence write of a tensor of a segment, by micro-batch, of all of
/// its slices.
std::map<int, Bytes> written(const SequenceContext& context, const SequenceDraft& draft,
                             int segment, model::TensorId tensor) {
  const int place = context.stages.facts(segment).place.at(tensor);
  std::map<int, Bytes> passes;
  for (const program::StoredCall& call : draft.calls()) {
    if (call.segment != segment || call.cell.pass != placement::CellPass::forward) continue;
    const Bytes bytes = at_place(context.table[call.block], place);
    if (bytes > Bytes{}) passes[call.cell.micro_batch] += bytes;
  }
  return passes;
}

}  // namespace

std::vector<program::Resident> kept_outputs(const SequenceContext& context,
                                            const SequenceDraft& draft) {
  std::vector<program::Resident> residents;
  const model::Graph& graph = context.plan.graph();
  for (std::size_t segment = 0; segment < graph.segments.size(); ++segment) {
    for (const model::OpId id : graph.segments[segment].forward) {
      const model::Operator& op = graph.operators[id];
      const auto rule = cost::rule_about(context.stack, &cost::KeptOutputs::of, stack_name(op));
      if (rule.of.empty()) continue;
      int passes = 0;
      for (const auto& [micro_batch, bytes] :
           written(context, draft, static_cast<int>(segment), op.outputs.front())) {
        if (passes++ < rule.passes) residents.push_back({program::Category::activations, bytes});
      }
    }
  }
  return residents;
}

}  // namespace stratagem::lowering

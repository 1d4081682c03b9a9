// Finds the slots that operators write in the calls of their segments.
#include "lowering/updates/kept_outputs.hpp"

#include <algorithm>
#include <map>
#include <string>

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

/// The largest first result of a kind of forward operator in any call of a sequence; 0: none runs.
Bytes largest_written(const SequenceContext& context, const SequenceDraft& draft,
                      const std::string& kind) {
  Bytes largest;
  const model::Graph& graph = context.plan.graph();
  for (const program::StoredCall& call : draft.calls()) {
    if (call.segment < 0) continue;
    for (const model::OpId id : graph.segments[call.segment].forward) {
      const model::Operator& op = graph.operators[id];
      if (stack_name(op) != kind) continue;
      const int place = context.stages.facts(call.segment).place.at(op.outputs.front());
      largest = std::max(largest, at_place(context.table[call.block], place));
    }
  }
  return largest;
}

/// What a call receives of activations.
Bytes received(const SequenceContext& context, const program::StoredCall& call) {
  const program::Block& block = context.table[call.block];
  Bytes bytes;
  for (const program::Task& task : block.tasks) {
    if (task.stream != program::Stream::receive_forward) continue;
    for (const int slot : task.writes) bytes += block.slots[slot].bytes;
  }
  return bytes;
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

std::vector<program::Resident> kept_buffers(const SequenceContext& context,
                                            const SequenceDraft& draft) {
  std::vector<program::Resident> residents;
  for (const cost::OperatorKernels& rule : cost::rules_of<cost::OperatorKernels>(context.stack)) {
    if (rule.kept_buffers == 0) continue;
    const Bytes largest = largest_written(context, draft, rule.of);
    if (largest > Bytes{})
      residents.insert(residents.end(), rule.kept_buffers,
                       {program::Category::temporaries, largest});
  }
  return residents;
}

std::vector<program::Resident> kept_messages(const SequenceContext& context,
                                             const SequenceDraft& draft) {
  if (!says(context.stack, cost::Lifetime::received_until_next)) return {};
  std::map<int, Bytes> of_stage;
  for (const program::StoredCall& call : draft.calls()) {
    Bytes& most = of_stage[call.cell.stage];
    most = std::max(most, received(context, call));
  }
  std::vector<program::Resident> residents;
  for (const auto& [stage, bytes] : of_stage) {
    if (bytes > Bytes{})
      residents.insert(residents.end(), 2, {program::Category::activations, bytes});
  }
  return residents;
}

}  // namespace stratagem::lowering

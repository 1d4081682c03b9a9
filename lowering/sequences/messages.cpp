// Derives messages from the borders of a stage's segments.
#include "lowering/sequences/messages.hpp"

#include <algorithm>

namespace stratagem::lowering {

using model::TensorId;
using placement::Cell;
using placement::CellPass;
using strategies::Plan;

std::vector<Message> incoming(const Plan& plan, const Stages& stages, const Cell& cell) {
  std::vector<Message> messages;
  for (const int segment : plan.stages[cell.stage]) {
    const SegmentFacts& facts = stages.facts(segment);
    if (cell.pass == CellPass::forward) {
      for (const TensorId tensor : facts.activations_in)
        messages.push_back({tensor, stages.of(stages.producer(tensor)), cell.stage});
    } else if (cell.pass == CellPass::backward) {
      for (const TensorId tensor : facts.activations_out) {
        const TensorId gradient = plan.graph().gradient_of[tensor];
        if (gradient >= 0)
          messages.push_back(
              {gradient, stages.of(stages.reader(tensor)), cell.stage, false, tensor});
      }
    }
  }
  for (const Recycled& one : stages.recycled()) {
    if (cell.pass == CellPass::forward && cell.repeat > 0 && stages.of(one.reader) == cell.stage)
      messages.push_back({one.tensor, stages.of(one.producer), cell.stage, true});
  }
  std::erase_if(messages, [](const Message& m) { return m.from == m.to; });
  return messages;
}

std::vector<Message> outgoing(const Plan& plan, const Stages& stages, const Cell& cell) {
  std::vector<Message> messages;
  for (const int segment : plan.stages[cell.stage]) {
    const SegmentFacts& facts = stages.facts(segment);
    if (cell.pass == CellPass::forward) {
      for (const TensorId tensor : facts.activations_out)
        messages.push_back({tensor, cell.stage, stages.of(stages.reader(tensor))});
    } else if (cell.pass == CellPass::backward) {
      for (const TensorId tensor : facts.activations_in) {
        const TensorId gradient = plan.graph().gradient_of[tensor];
        if (gradient >= 0)
          messages.push_back({gradient, cell.stage, stages.of(stages.producer(tensor))});
      }
    }
  }
  const bool again = cell.repeat + 1 < plan.graph().forward_repeats;
  for (const Recycled& one : stages.recycled()) {
    if (cell.pass == CellPass::forward && again && stages.of(one.producer) == cell.stage)
      messages.push_back({one.tensor, cell.stage, stages.of(one.reader), true});
  }
  std::erase_if(messages, [](const Message& m) { return m.from == m.to; });
  return messages;
}

std::vector<ScheduledCell> send_order(const Plan& plan, const Stages& stages,
                                      const CellOrder& order, const ReplicaPair& pair,
                                      CellPass pass, bool recycled) {
  const int last = plan.graph().forward_repeats - 1;
  const int device_class = stages.class_of_device()[pair.sender.grid.devices().front()];
  std::vector<ScheduledCell> result;
  for (const ScheduledCell& one : order.rounds[device_class]) {
    const Cell& cell = one.cell;
    const auto works = [&](const Replica& replica) {
      return plan.copy_of(replica.stage, cell.micro_batch) == replica.copy;
    };
    const bool theirs = cell.stage == pair.sender.stage && cell.pass == pass &&
                        works(pair.sender) && works(pair.receiver);
    if (theirs && (!recycled || cell.repeat < last)) result.push_back(one);
  }
  std::ranges::stable_sort(result, {}, &ScheduledCell::lag);
  return result;
}

}  // namespace stratagem::lowering

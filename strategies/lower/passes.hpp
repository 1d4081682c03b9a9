// The order of the two passes of a segment, for whatever lowers its operators: one block for all
// devices (block.cpp) or one for each (scattered.cpp).
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "strategies/lower/block.hpp"

namespace stratagem::strategies {

/// Runs the forward operators in order, those of a group apart from the others.
template <typename Lowering>
void run_forward(Lowering& lowering, const BlockContext& context, bool trains) {
  const Recomputation& again = context.recomputation;
  std::vector<model::OpId> alike;
  std::set<int> begun;
  const auto flush = [&] { lowering.run(std::exchange(alike, {}), false); };
  for (const model::OpId id : context.plan.graph().segments[context.facts.segment].forward) {
    const int group = again.group_of(id);
    if (!alike.empty() && again.group_of(alike.back()) != group) flush();
    if (group >= 0 && begun.insert(group).second && trains)
      lowering.copy_random_state(context.stack.random_state.before_forward);
    alike.push_back(id);
  }
  flush();
}

/// Runs backward operators in order, each group of forward operators again before the first of them
/// that needs it.
template <typename Lowering>
void run_backward(Lowering& lowering, const BlockContext& context,
                  const std::vector<model::OpId>& ops, bool weight_alone) {
  const Recomputation& again = context.recomputation;
  const cost::RandomStateFacts& random = context.stack.random_state;
  std::set<int> run = again.run_before(weight_alone);
  std::vector<model::OpId> alike;
  const auto flush = [&] { lowering.run(std::exchange(alike, {}), false); };
  for (const model::OpId id : ops) {
    for (const int group : again.needed_by(context.plan.graph().operators[id])) {
      if (!run.insert(group).second) continue;
      flush();
      lowering.copy_random_state(random.before_recomputation);
      lowering.run(again.groups()[group].operators, true);
      lowering.copy_random_state(random.after_recomputation);
    }
    alike.push_back(id);
  }
  flush();
}

/// What lower_forward says.
template <typename Lowering>
void forward_pass(Lowering& lowering, const BlockContext& context, const std::map<int, Border>& in,
                  const std::map<int, Category>& leaves, bool trains) {
  const model::Graph& graph = context.plan.graph();
  const SegmentFacts& facts = context.facts;
  const Recomputation& again = context.recomputation;
  for (const auto& [place, border] : in) lowering.import(facts.tensors[place], border);
  run_forward(lowering, context, trains);
  if (trains) {
    for (const model::TensorId tensor : again.kept()) {
      const bool from_outside = in.contains(facts.place.at(tensor));
      from_outside ? lowering.spare(tensor)
                   : lowering.keep(tensor, again.category_of(graph, tensor));
    }
  }
  for (const auto& [place, category] : leaves) lowering.leave(facts.tensors[place], category);
}

/// What lower_backward says.
template <typename Lowering>
void backward_pass(Lowering& lowering, const BlockContext& context,
                   const std::map<int, Border>& kept, const std::map<int, Border>& in,
                   BackwardPart part) {
  const model::Graph& graph = context.plan.graph();
  const SegmentFacts& facts = context.facts;
  const model::Segment& segment = graph.segments[facts.segment];
  for (const auto* imported : {&kept, &in}) {
    for (const auto& [place, border] : *imported) lowering.import(facts.tensors[place], border);
  }
  if (part == BackwardPart::weight) {
    run_backward(lowering, context, facts.weight_gradients, true);
    return;
  }
  run_backward(lowering, context,
               part == BackwardPart::both ? segment.backward : facts.input_gradients, false);
  for (const model::TensorId tensor : facts.gradients_out)
    lowering.leave(tensor, Category::temporaries);
  if (part == BackwardPart::input) {
    for (const model::TensorId tensor : context.recomputation.read_by_weight()) {
      const int place = facts.place.at(tensor);
      const bool from_outside = kept.contains(place) || in.contains(place);
      from_outside ? lowering.spare(tensor)
                   : lowering.keep(tensor, context.recomputation.category_of(graph, tensor));
    }
  }
}

}  // namespace stratagem::strategies

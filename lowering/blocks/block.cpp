// The order of operators in the passes of a segment, and what each pass leaves.
#include "lowering/blocks/block.hpp"

#include <set>
#include <utility>

#include "lowering/blocks/segment_lowering.hpp"

namespace stratagem::lowering {
namespace {

/// Runs the forward operators in order, those of a group apart from the others. If all run again in
/// a block of their own, groups within them matter to that run alone.
void run_forward(SegmentLowering& lowering, const BlockContext& context, ForwardRun run) {
  const Recomputation& groups = context.recomputation;
  const int segment = context.facts.segment;
  const auto& together = groups.together();
  const bool again = run == ForwardRun::again;
  if (together && together->first == segment && run != ForwardRun::infers)
    lowering.copy_random_state(again ? "before recomputation" : "before recomputed passes");
  std::vector<model::OpId> alike;
  std::set<int> begun;
  int before = -1;
  const auto flush = [&] { lowering.run(std::exchange(alike, {}), again); };
  for (const model::OpId id : context.plan.graph().segments[segment].forward) {
    const int group = together && !again ? -1 : groups.group_of(id);
    if (!alike.empty() && before != group) flush();
    if (group >= 0 && begun.insert(group).second && run != ForwardRun::infers)
      lowering.copy_random_state("before recomputed passes");
    alike.push_back(id);
    before = group;
  }
  flush();
  if (again && together->last == segment) lowering.copy_random_state("after recomputation");
}

/// Runs backward operators in order, each group of forward operators again before the first of them
/// that needs it.
void run_backward(SegmentLowering& lowering, const BlockContext& context,
                  const std::vector<model::OpId>& ops, bool weight_alone) {
  const Recomputation& again = context.recomputation;
  std::set<int> run = again.run_before(weight_alone);
  std::vector<model::OpId> alike;
  const auto flush = [&] { lowering.run(std::exchange(alike, {}), false); };
  for (const model::OpId id : ops) {
    for (const int group : again.needed_by(context.plan.graph().operators[id])) {
      if (!run.insert(group).second) continue;
      flush();
      lowering.copy_random_state("before recomputation");
      lowering.run(again.groups()[group].operators, true);
      lowering.copy_random_state("after recomputation");
    }
    alike.push_back(id);
  }
  flush();
}

/// What lower_forward says.
void forward_pass(SegmentLowering& lowering, const BlockContext& context,
                  const std::map<int, Border>& in, const std::map<int, program::Category>& leaves,
                  ForwardRun run) {
  const model::Graph& graph = context.plan.graph();
  const SegmentFacts& facts = context.facts;
  const Recomputation& groups = context.recomputation;
  for (const auto& [place, border] : in) lowering.import(facts.tensors[place], border);
  const bool again = run == ForwardRun::again;
  Outliving& outliving = lowering.outliving();
  run_forward(lowering, context, run);
  if (run != ForwardRun::infers) {
    for (const model::TensorId tensor : again ? groups.kept_again() : groups.kept()) {
      const int place = facts.place.at(tensor);
      const program::Category category = groups.category_of(graph, tensor);
      const bool divide = !again && groups.checkpoint(tensor) && !leaves.contains(place);
      if (divide && outliving.keep_part(tensor, category)) continue;
      if (!in.contains(place)) {
        outliving.keep(tensor, category);
      } else {
        again ? outliving.keep_whole(tensor, category) : outliving.spare(tensor);
      }
    }
  }
  for (const auto& [place, category] : leaves) outliving.leave(facts.tensors[place], category);
}

/// What lower_backward says.
void backward_pass(SegmentLowering& lowering, const BlockContext& context,
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
  Outliving& outliving = lowering.outliving();
  for (const model::TensorId tensor : facts.gradients_out)
    outliving.leave(tensor, program::Category::temporaries);
  if (part == BackwardPart::input) {
    for (const model::TensorId tensor : context.recomputation.read_by_weight()) {
      const int place = facts.place.at(tensor);
      const bool from_outside = kept.contains(place) || in.contains(place);
      from_outside ? outliving.spare(tensor)
                   : outliving.keep(tensor, context.recomputation.category_of(graph, tensor));
    }
  }
}

}  // namespace

LoweredPass lower_forward(const BlockContext& context, const std::map<int, Border>& in,
                          const std::map<int, program::Category>& leaves, ForwardRun run) {
  SegmentLowering lowering(context, run == ForwardRun::again ? "F again" : "F");
  forward_pass(lowering, context, in, leaves, run);
  return lowering.finish();
}

LoweredPass lower_backward(const BlockContext& context, const std::map<int, Border>& kept,
                           const std::map<int, Border>& in, BackwardPart part) {
  SegmentLowering lowering(context, part == BackwardPart::weight ? "W" : "B");
  backward_pass(lowering, context, kept, in, part);
  if (part != BackwardPart::weight) lowering.gather_all();
  return lowering.finish();
}

}  // namespace stratagem::lowering

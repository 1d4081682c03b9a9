// Goes through an iteration's runs, and gathers each weight before the first that reads it.
#include "lowering/residency/step_gathers.hpp"

#include <set>

#include "lowering/residency/gather_tasks.hpp"
#include "lowering/stages/shards.hpp"

namespace stratagem::lowering {

using model::TensorId;
using program::Block;
using program::Stream;

namespace {

bool is_stepped_in_shards(const strategies::Plan& plan, TensorId parameter,
                          const LocalHolding& local) {
  using What = strategies::Keep::What;
  return plan.graph().gradient_of[parameter] >= 0 && local.divides(plan, What::states) &&
         !local.divides(plan, What::parameters);
}

std::vector<SegmentRun> runs_of(const auto& uses) {
  std::vector<SegmentRun> runs;
  for (const auto& [run, parameters] : uses) runs.push_back(run);
  return runs;
}

}  // namespace

Block step_gathers(const SequenceContext& context, int device_class, std::string name,
                   Stream stream, int purpose, const std::vector<TensorId>& parameters) {
  Block block{.name = std::move(name), .slots = {}, .tasks = {}};
  GatherTasks gathers(context.groups, block.name, stream, purpose,
                      cost::rule_of<cost::StepGathers>(context.stack));
  for (const TensorId parameter : parameters) {
    const LocalHolding& local = context.parameters.on(device_class).at(parameter);
    if (!is_stepped_in_shards(context.plan, parameter, local)) continue;
    program::Task& task = gathers.add(local);
    task.reads.push_back(static_cast<int>(block.slots.size()));
    task.writes = task.reads;
    program::Operation& gather = task.operations.front();
    gather.inputs.back().tensor = gather.outputs.back().tensor = parameter;
    block.slots.push_back({context.plan.graph().tensors[parameter].name, parameter, local.bytes,
                           program::Category::parameters});
  }
  gathers.append_to(block);
  return block;
}

StepGathers::StepGathers(const SequenceContext& context, SequenceDraft& draft,
                         const std::vector<SegmentRun>& runs)
    : StepGathers(context, draft, first_uses(context, draft.device_class(), runs)) {}

StepGathers::StepGathers(const SequenceContext& context, SequenceDraft& draft,
                         std::vector<FirstUse> uses)
    : AheadOfRuns(context, draft, runs_of(uses), ahead_of(context.plan)), uses_(std::move(uses)) {}

std::vector<StepGathers::FirstUse> StepGathers::first_uses(const SequenceContext& context,
                                                           int device_class,
                                                           const std::vector<SegmentRun>& runs) {
  std::vector<FirstUse> uses;
  if (!gathers_before_first_use(context.plan)) return uses;
  std::set<TensorId> seen;
  for (const SegmentRun& run : runs) {
    std::vector<TensorId> fresh;
    for (const auto& [place, layout] : run.block->lowered.parameters) {
      const TensorId parameter = context.stages.facts(run.segment).tensors[place];
      const LocalHolding& local = context.parameters.on(device_class).at(parameter);
      const bool stepped = is_stepped_in_shards(context.plan, parameter, local);
      if (stepped && seen.insert(parameter).second) fresh.push_back(parameter);
    }
    if (!fresh.empty()) uses.emplace_back(run, std::move(fresh));
  }
  return uses;
}

bool StepGathers::needed(const SegmentRun& run) const {
  const std::optional<SegmentRun> next = next_run();
  return next && next->of == run.of && next->segment == run.segment && next->again == run.again;
}

Written StepGathers::issue(std::size_t index) {
  const auto& [run, parameters] = uses_[index];
  const std::string name =
      "gather parameters of " + context().plan.graph().segments[run.segment].name;
  const Stream stream = index == 0 ? Stream::compute : Stream::parameter_communication;
  // Groups of their own, as of Gathers.
  const int block = context().table.add(
      step_gathers(context(), draft().device_class(), name, stream, 1, parameters));
  return follow(index, draft().add_call(block, -1, *run.of));
}

void StepGathers::connect(std::size_t index, int call) {
  const auto& [run, parameters] = uses_[index];
  std::set<int> places;
  for (const TensorId parameter : parameters)
    places.insert(context().stages.facts(run.segment).place.at(parameter));
  hold_readers(index, call, places);
}

}  // namespace stratagem::lowering

// Every parameter steps once per stage that holds it.
#include "strategies/lower/optimizer.hpp"

#include <map>
#include <set>
#include <utility>

#include "strategies/lower/casts.hpp"
#include "strategies/lower/kernels.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// A parameter's task in a step block; `place` is its place in the segment's table.
void add_step(StepBlock& step, const model::Tensor& tensor, const std::string& prefix, int place,
              const cost::Stepped& stepped, const SequenceContext& context) {
  const bool on_host = context.plan.steps_on_host;
  const Bytes bytes = stepped.elements * model::size_of(tensor.type);
  const std::string name =
      tensor.name.starts_with(prefix) ? tensor.name.substr(prefix.size()) : tensor.name;
  const auto slot = static_cast<int>(step.block.slots.size());
  step.block.slots.push_back({name, place, bytes, Category::parameters});
  Task task{};
  task.name = name + ".step";
  task.work = on_host ? host_optimizer_kernel(stepped, context.training, context.stack)
                      : optimizer_kernel(stepped, context.training, context.stack);
  if (on_host) task.stream = Stream::host;
  if (!on_host) task.reads = task.writes = {slot};
  // The thread that launches kernels steps, too.
  task.synchronizations = on_host ? 1 : context.stack.optimizer.synchronizations;
  step.bytes += bytes;
  step.block.tasks.push_back(std::move(task));
  step.key += " " + std::to_string(place) + ":" + name + std::to_string(bytes.value);
  if (is_factored(context.training.optimizer)) {
    for (const std::int64_t size : stepped.shape) step.key += "x" + std::to_string(size);
  }
}

/// What a device of a host steps of a parameter.
cost::Stepped stepped(const SequenceContext& context, const model::Tensor& tensor,
                      const LocalHolding& local) {
  const Bytes kept = local.kept(context.plan, WeightShards::Of::steps);
  return {
      .shape = local.shape, .elements = kept / model::size_of(tensor.type), .type = tensor.type};
}

}  // namespace

std::vector<StepBlock> step_blocks(const SequenceContext& context, int host) {
  const model::Graph& graph = context.plan.graph();
  const std::map<TensorId, LocalHolding>& held = context.parameters.on(host);
  std::map<int, std::vector<TensorId>> by_segment;
  for (const auto& [parameter, local] : held) {
    if (graph.gradient_of[parameter] >= 0) by_segment[local.segments.front()].push_back(parameter);
  }
  std::vector<StepBlock> steps;
  for (const auto& [segment, list] : by_segment) {
    StepBlock step{.segment = segment, .bytes = {}, .block = {.name = "step"}, .key = "step"};
    std::map<int, TensorId> by_place;
    for (const TensorId parameter : list)
      by_place.emplace(context.stages.facts(segment).place.at(parameter), parameter);
    for (const auto& [place, parameter] : by_place) {
      const model::Tensor& tensor = graph.tensors[parameter];
      step.parameters.push_back(parameter);
      add_step(step, tensor, graph.segments[segment].name + ".", place,
               stepped(context, tensor, held.at(parameter)), context);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

namespace {

/// How many parameters a device holds, and steps.
struct Counts {
  double held = 0;
  double stepped = 0;
};

/// What frameworks copy for all steps of a device at once, and buffer on the way to reductions.
void add_step_copies(std::vector<Resident>& residents, const SequenceContext& context,
                     const SequenceDraft& draft, const Counts& counts) {
  const cost::OptimizerFacts& facts = context.stack.optimizer;
  const auto add = [&](Bytes bytes, Category category, const std::optional<Resident::Span>& span) {
    if (bytes <= Bytes{}) return;
    residents.push_back({category, bytes});
    if (context.plan.updates.flush) residents.back().span = span;
  };
  for (const auto& [name, size] : facts.step_copies)
    add(counts.stepped * size, Category::temporaries, draft.steps_span());
  for (const auto& [name, size] : facts.reduction_copies)
    add(counts.held * size, Category::temporaries, draft.steps_span());
  const auto buffer = facts.reduction_buffers.find(static_cast<int>(context.plan.shards.of));
  const std::optional<Resident::Span> span = draft.gradients_span();
  if (buffer != facts.reduction_buffers.end() && span)
    add(buffer->second, Category::whole_gradients, span);
}

}  // namespace

std::vector<Resident> resident_buffers(const SequenceContext& context, const SequenceDraft& draft,
                                       int versions) {
  const Plan& plan = context.plan;
  const std::set<TensorId> cast = cast_parameters(plan.graph(), context.training.precision);
  std::vector<Resident> residents;
  const auto keep_states = [&](Bytes bytes) {
    if (bytes > Bytes{}) residents.push_back({Category::optimizer_states, bytes});
  };
  Counts counts;
  for (const auto& [parameter, local] : context.parameters.on(draft.host())) {
    const model::Tensor& tensor = plan.graph().tensors[parameter];
    using Of = WeightShards::Of;
    residents.push_back({Category::parameters, versions * local.kept(plan, Of::parameters)});
    if (cast.contains(parameter)) {
      residents.push_back({Category::parameters, versions * copies_of(local.bytes, tensor.type,
                                                                      context.training.precision)});
    }
    if (plan.graph().gradient_of[parameter] < 0 || plan.steps_on_host) continue;
    residents.push_back(
        {Category::gradients, local.gradient_scale * local.kept(plan, Of::gradients)});
    const bool shard = plan.shards.divides(Of::gradients) && !local.shards.empty();
    if (context.stack.frees_gradients && plan.updates.flush && !shard)
      residents.back().span = draft.gradient_span(parameter);
    const double elements = local.bytes / model::size_of(tensor.type);
    for (const auto& [name, size] : context.stack.optimizer.gradient_copies)
      residents.push_back({Category::gradients, elements * size});
    const cost::Stepped steps = stepped(context, tensor, local);
    counts.held += elements;
    counts.stepped += steps.elements;
    keep_states(cost::master_bytes(context.training.precision, steps));
    for (const cost::OptimizerState& state : context.training.optimizer.states)
      keep_states(cost::state_bytes(state, steps));
    for (const auto& [name, size] : context.stack.optimizer.extra_states)
      keep_states(steps.elements * size);
  }
  add_step_copies(residents, context, draft, counts);
  return residents;
}

}  // namespace stratagem::strategies

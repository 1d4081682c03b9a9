// Every parameter steps once per stage that holds it.
#include "strategies/lower/optimizer.hpp"

#include <map>
#include <utility>

#include "strategies/lower/kernels.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// A parameter's task in a step block; `place` is its place in the segment's table.
void add_step(StepBlock& step, const model::Tensor& tensor, const std::string& prefix, int place,
              Bytes bytes, const cost::Stack& stack, bool on_host) {
  const std::string name =
      tensor.name.starts_with(prefix) ? tensor.name.substr(prefix.size()) : tensor.name;
  const auto slot = static_cast<int>(step.block.slots.size());
  step.block.slots.push_back({name, place, bytes, Category::parameters});
  Task task{};
  task.name = name + ".step";
  const double elements = bytes / model::size_of(tensor.type);
  task.work = on_host ? host_optimizer_kernel(elements, tensor.type, stack)
                      : optimizer_kernel(elements, stack);
  if (on_host) task.stream = Stream::host;
  if (!on_host) task.reads = task.writes = {slot};
  // The thread that launches kernels steps, too.
  task.synchronizations = on_host ? 1 : stack.optimizer.synchronizations;
  step.bytes += bytes;
  step.block.tasks.push_back(std::move(task));
  step.key += " " + std::to_string(place) + ":" + name + std::to_string(bytes.value);
}

}  // namespace

std::vector<StepBlock> step_blocks(const Plan& plan, const cost::Stack& stack, const Stages& stages,
                                   const Parameters& parameters, int host) {
  const model::Graph& graph = plan.graph();
  std::map<int, std::vector<TensorId>> by_segment;
  for (const auto& [parameter, local] : parameters.on(host)) {
    if (graph.gradient_of[parameter] >= 0) by_segment[local.segments.front()].push_back(parameter);
  }
  std::vector<StepBlock> steps;
  for (const auto& [segment, list] : by_segment) {
    StepBlock step{.segment = segment, .bytes = {}, .block = {.name = "step"}, .key = "step"};
    std::map<int, TensorId> by_place;
    for (const TensorId parameter : list)
      by_place.emplace(stages.facts(segment).place.at(parameter), parameter);
    for (const auto& [place, parameter] : by_place) {
      const Bytes bytes = parameters.on(host).at(parameter).kept(plan, WeightShards::Of::steps);
      add_step(step, graph.tensors[parameter], graph.segments[segment].name + ".", place, bytes,
               stack, plan.steps_on_host);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<Resident> resident_buffers(const Plan& plan, const cost::Stack& stack,
                                       const Parameters& parameters, int host, int versions) {
  std::vector<Resident> residents;
  for (const auto& [parameter, local] : parameters.on(host)) {
    const model::Tensor& tensor = plan.graph().tensors[parameter];
    using Of = WeightShards::Of;
    residents.push_back({Category::parameters, versions * local.kept(plan, Of::parameters)});
    if (plan.graph().gradient_of[parameter] < 0 || plan.steps_on_host) continue;
    residents.push_back({Category::gradients, local.kept(plan, Of::gradients)});
    const double elements = local.kept(plan, Of::steps) / model::size_of(tensor.type);
    for (const auto& [name, size] : stack.optimizer.states) {
      residents.push_back({Category::optimizer_states, elements * size});
    }
  }
  return residents;
}

}  // namespace stratagem::strategies

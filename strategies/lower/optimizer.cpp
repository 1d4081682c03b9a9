// Every parameter steps once per stage that holds it.
#include "strategies/lower/optimizer.hpp"

#include <set>
#include <utility>

#include "strategies/lower/gradients.hpp"
#include "strategies/lower/kernels.hpp"

namespace stratagem::strategies {
namespace {

using model::TensorId;

/// A parameter's task in a step block; `place` is its place in the segment's table.
void add_step(StepBlock& step, const model::Tensor& tensor, const std::string& prefix, int place,
              Bytes bytes, const cost::Stack& stack) {
  const std::string name =
      tensor.name.starts_with(prefix) ? tensor.name.substr(prefix.size()) : tensor.name;
  const auto slot = static_cast<int>(step.block.slots.size());
  step.block.slots.push_back({name, place, bytes, Category::parameters});
  Task task{};
  task.name = name + ".step";
  task.work = optimizer_kernel(bytes / model::size_of(tensor.type), stack);
  task.reads = task.writes = {slot};
  task.synchronizations = stack.optimizer.synchronizations;
  step.block.tasks.push_back(std::move(task));
  step.key += " " + std::to_string(place) + ":" + name + std::to_string(bytes.value);
}

}  // namespace

std::vector<StepBlock> step_blocks(const Plan& plan, const cost::Stack& stack, const Stages& stages,
                                   const Blocks& blocks, int stage) {
  const model::Graph& graph = plan.graph();
  const ParameterLayouts layouts = parameter_layouts(plan, stages, blocks, stage);
  std::set<TensorId> stepped;
  std::vector<StepBlock> steps;
  for (const int segment : plan.stages[stage]) {
    StepBlock step{.segment = segment, .block = {.name = "step"}, .key = "step"};
    for (const auto& [place, seen] : blocks.forward(segment).lowered.parameters) {
      const TensorId parameter = stages.facts(segment).tensors[place];
      if (graph.gradient_of[parameter] < 0 || !stepped.insert(parameter).second) continue;
      const Bytes bytes =
          local_bytes(graph.tensors[parameter], layouts.at(parameter), stages.grid(stage));
      add_step(step, graph.tensors[parameter], graph.segments[segment].name + ".", place, bytes,
               stack);
    }
    if (!step.block.tasks.empty()) steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<Resident> resident_buffers(const Plan& plan, const cost::Stack& stack,
                                       const Stages& stages, const Blocks& blocks, int stage) {
  std::vector<Resident> residents;
  for (const auto& [parameter, layout] : parameter_layouts(plan, stages, blocks, stage)) {
    const model::Tensor& tensor = plan.graph().tensors[parameter];
    const Bytes bytes = local_bytes(tensor, layout, stages.grid(stage));
    residents.push_back({Category::parameters, bytes});
    if (plan.graph().gradient_of[parameter] < 0) continue;
    residents.push_back({Category::gradients, bytes});
    const double elements = bytes / model::size_of(tensor.type);
    for (const auto& [name, size] : stack.optimizer.states) {
      residents.push_back({Category::optimizer_states, elements * size});
    }
  }
  return residents;
}

}  // namespace stratagem::strategies

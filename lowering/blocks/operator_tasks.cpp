// Reads, writes and kernels of operators, once the block holds what they read.
#include "lowering/blocks/operator_tasks.hpp"

#include <algorithm>
#include <utility>

#include "lowering/stack/casts.hpp"
#include "lowering/stack/cuda_graphs.hpp"
#include "lowering/stack/fusions.hpp"
#include "lowering/stack/kernels.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::lowering {

using model::TensorId;
using placement::Part;
using program::Category;
using program::Operand;
using program::Task;

OperatorTasks::OperatorTasks(const BlockContext& context, BlockDraft& block)
    : c_(context),
      graph_(context.graph),
      block_(block),
      weights_(context, block),
      held_(context.stack) {}

void OperatorTasks::run(std::span<const OperatorPart> group, bool recomputed) {
  Task task{};
  for (std::size_t i = 0; i < group.size(); ++i) read_operands(task, group[i], i > 0);
  for (const OperatorPart& op : group) write_results(task, op, recomputed);
  for (const OperatorPart& op : group) hold_operands(task, op);
  for (const OperatorPart& op : group) add_temporary(task, op);
  for (const OperatorPart& op : group) {
    task.name.append(task.name.empty() ? "" : " + ")
        .append(name_within(graph_, graph_.operators[op.id]));
    task.operations.push_back(operation(op));
    task.synchronizations += kernels_of(c_.stack, graph_, graph_.operators[op.id]).synchronizations;
  }
  if (recomputed) task.name += " again";
  task.work = launched(kernel(group), group.front(), task.synchronizations == 0);
  task.recomputed = recomputed;
  block_.push(std::move(task));
}

/// `inner`: the first operand comes from the operator before it in the same kernel.
void OperatorTasks::read_operands(Task& task, const OperatorPart& part, bool inner) {
  const model::Operator& op = graph_.operators[part.id];
  for (std::size_t i = inner ? 1 : 0; i < op.inputs.size(); ++i) {
    const TensorId tensor = op.inputs[i];
    const model::Role role = graph_.tensors[tensor].role;
    if (model::is_given(role)) continue;  // token ids and the like: no buffer of a block
    if (role == model::Role::parameter) {
      weights_.read(task, name_of(graph_, c_.facts, tensor), part.reads[i]);
    } else {
      block_.read(task, tensor, part.reads[i]);
    }
  }
}

void OperatorTasks::write_results(Task& task, const OperatorPart& part, bool recomputed) {
  const model::Operator& op = graph_.operators[part.id];
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const TensorId tensor = op.outputs[i];
    const bool again = recomputed && c_.recomputation.inner(tensor);
    const bool statistic = graph_.tensors[tensor].role == model::Role::statistic;
    const Category category = statistic ? Category::statistics
                              : again   ? Category::activations
                                        : Category::temporaries;
    if (weights_.is_gradient_of_parameter(tensor)) {
      weights_.add(task, name_of(graph_, c_.facts, tensor), part.leaves[i], part.id);
    } else {
      block_.write(task, name_of(graph_, c_.facts, tensor), part.leaves[i], category);
    }
  }
  if (!held_in_another_type(graph_, op)) return;
  const TensorId gradient = op.outputs[0];  // a buffer until it has been added
  const int slot =
      block_.add_slot(name_of(graph_, c_.facts, gradient), part.leaves[0], Category::temporaries);
  block_.slot(slot).bytes = model::size_of(computed_type(graph_, op, gradient)) /
                            model::size_of(graph_.tensors[gradient].type) * block_.slot(slot).bytes;
  task.writes.push_back(slot);
}

/// Notes what variables of the framework name from an operator on; its task is then the last to use
/// what they name no longer.
void OperatorTasks::hold_operands(Task& task, const OperatorPart& part) {
  if (held_.empty()) return;
  const model::Operator& op = graph_.operators[part.id];
  std::vector<int> slots;  // neither inputs nor resident
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const int slot = named(op.inputs[i], part.reads[i], false).slot;
    if (slot >= 0) slots.push_back(slot);
  }
  const std::vector<int> gone = held_.pass(stack_name(op), slots);
  task.reads.insert(task.reads.end(), gone.begin(), gone.end());
}

/// A buffer that only this task uses, as the stack says.
void OperatorTasks::add_temporary(Task& task, const OperatorPart& part) {
  const model::Operator& op = graph_.operators[part.id];
  const Bytes each = kernels_of(c_.stack, graph_, op).temporary;
  if (each == Bytes{}) return;
  SlotName name = name_of(graph_, c_.facts, op.outputs[0]);
  name.name += ", temporary";
  const int slot = block_.add_slot(name, part.leaves[0], Category::temporaries);
  const Bytes size = model::size_of(graph_.tensors[op.outputs[0]].type);
  block_.slot(slot).bytes = (block_.slot(slot).bytes / size) * each;
  task.writes.push_back(slot);
}

/// What an operator does, once its operands are read and its results have slots.
program::Operation OperatorTasks::operation(const OperatorPart& part) const {
  const model::Operator& op = graph_.operators[part.id];
  program::Operation result{.op = c_.facts.place_of_operator.at(part.id),
                            .replicas = part.replicas};
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    result.inputs.push_back(named(op.inputs[i], part.reads[i], false));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    result.outputs.push_back(named(op.outputs[i], part.leaves[i], true));
    result.adds = result.adds || weights_.is_gradient_of_parameter(op.outputs[i]);
  }
  return result;
}

/// A part and where it lies: what was there first is read, what came last was written.
Operand OperatorTasks::named(TensorId tensor, const Part& part, bool written) const {
  const std::optional<int> whole = weights_.slot_of(tensor);
  const int slot = whole                         ? *whole
                   : !block_.holds(tensor, part) ? -1
                   : written                     ? block_.last_slot_of(tensor, part)
                                                 : block_.slot_of(tensor, part);
  return operand(c_.facts.place.at(tensor), slot, part);
}

/// The kernel of one of the operators, which also moves what the others move but for what passes
/// between them. What others read, too, is written.
cost::Kernel OperatorTasks::kernel(std::span<const OperatorPart> group) const {
  std::vector<std::string> kinds;
  for (const OperatorPart& part : group) kinds.push_back(stack_name(graph_.operators[part.id]));
  const std::size_t chosen = kernel_of_fused(c_.stack, kinds);
  cost::Kernel kernel = kernel_alone(group[chosen]);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (i != chosen) kernel.traffic += kernel_alone(group[i]).traffic;
    if (i + 1 == group.size()) break;
    const TensorId passed_on = graph_.operators[group[i].id].outputs[0];
    kernel.traffic -= (others_read(passed_on, group[i + 1].id) ? 1 : 2) *
                      bytes_of(graph_.tensors[passed_on], group[i].leaves[0], c_.grid);
  }
  return kernel;
}

/// The kernel as the host launches it. Of neighbours in a CUDA graph the first is the launch of
/// all; a graph ends where the host waits.
cost::Kernel OperatorTasks::launched(cost::Kernel kernel, const OperatorPart& part,
                                     bool capturable) {
  const model::Operator& op = graph_.operators[part.id];
  const model::Operator& named = op.forward < 0 ? op : graph_.operators[op.forward];
  const bool in_graph = capturable && in_cuda_graph(c_.stack, name_within(graph_, named));
  const bool goes_on = std::exchange(graph_goes_on_, in_graph);
  if (in_graph) kernel.by = goes_on ? cost::LaunchedBy::replay : cost::LaunchedBy::graph;
  return kernel;
}

/// Does the forward pass of this segment read a tensor in another operator, too?
bool OperatorTasks::others_read(TensorId tensor, model::OpId reader) const {
  return std::ranges::any_of(graph_.segments[c_.facts.segment].forward, [&](model::OpId id) {
    return id != reader && std::ranges::count(graph_.operators[id].inputs, tensor) > 0;
  });
}

cost::Kernel OperatorTasks::kernel_alone(const OperatorPart& part) const {
  const model::Operator& op = graph_.operators[part.id];
  Shapes inputs;
  Shapes outputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    inputs.push_back(
        shape_of(operand_of(op.inputs[i], op.annotation->inputs[i]), part.reads[i], c_.grid));
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    outputs.push_back(
        shape_of(operand_of(op.outputs[i], op.annotation->outputs[i]), part.leaves[i], c_.grid));
  cost::Kernel kernel =
      on_operands_of(kernel_of(graph_, op, inputs, outputs, c_.stack), graph_, op, c_.precision);
  if (op.kind == model::OpKind::cast)
    complete_cast(kernel, graph_, op, outputs.front(), c_.precision);
  if (op.pass == model::Pass::weight_gradient) {
    const model::Tensor& gradient = graph_.tensors[op.outputs[0]];
    hold_gradient(kernel, graph_, op,
                  bytes_of(gradient, part.leaves[0], c_.grid) / model::size_of(gradient.type),
                  !weights_.keeps_nothing_whole(part.leaves[0]), c_.stack);
  }
  return kernel;
}

/// A tensor in the shape in which an operator sees it.
model::Tensor OperatorTasks::operand_of(TensorId id, const std::vector<model::Term>& terms) const {
  model::Tensor tensor = graph_.tensors[id];
  tensor.shape = operand_shape(std::move(tensor.shape), terms, c_.slice);
  return tensor;
}

}  // namespace stratagem::lowering

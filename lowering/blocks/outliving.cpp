// Marks buffers that live on after their block.
#include "lowering/blocks/outliving.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using model::OpId;
using model::TensorId;
using placement::AxisRole;
using placement::Distribution;
using placement::PlacedPart;
using program::Category;
using program::Task;
using strategies::Keep;

namespace {

/// A layout of a checkpoint whose devices along the plan's axes hold parts where they held the
/// same.
placement::Layout divided_checkpoint(const strategies::Plan& plan, const placement::Grid& grid,
                                     const model::Tensor& tensor, placement::Layout layout) {
  for (std::size_t axis = 0; axis < layout.size(); ++axis) {
    const placement::Axis& ranks = grid.axes[axis];
    const bool named = std::ranges::count(plan.divided(Keep::What::checkpoints), ranks.name) > 0;
    if (!named || layout[axis].dim != AxisRole::replica) continue;
    const auto parts = divided(layout, axis, tensor, grid);
    if (!parts) {
      throw InputError("", plan.residency.of(Keep::What::checkpoints)->said_divided,
                       "a dimension of " + tensor.name + " that divides by " +
                           std::to_string(ranks.size) + ", the ranks of " + ranks.name,
                       "none");
    }
    layout = *parts;
  }
  return layout;
}

}  // namespace

void Outliving::leave(TensorId tensor, Category category) {
  if (!connections_.has(tensor)) {
    throw InputError("", "/model", "what leaves a segment to be computed there",
                     graph_.tensors[tensor].name);
  }
  const Distribution full = completed(connections_.versions(tensor).front());
  connections_.obtain(name_of(graph_, c_.facts, tensor), full, false);
  for (const auto& [device, part] : full) {
    BlockDraft& block = blocks_.at(device);
    block.keep(block.slot_of(tensor, part), category);
  }
  out_[c_.facts.place.at(tensor)] = border_of(full, c_.grid, category);
}

void Outliving::keep_version(TensorId tensor, const Distribution& version, Category category) {
  for (const auto& [device, part] : version) {
    BlockDraft& block = blocks_.at(device);
    block.keep(block.last_slot_of(tensor, part), category);
  }
  out_[c_.facts.place.at(tensor)] = border_of(version, c_.grid, category);
}

void Outliving::keep(TensorId tensor, Category category) {
  if (connections_.has(tensor)) keep_version(tensor, smallest(tensor), category);
}

/// Of the versions of a tensor that of fewest bytes; among equals one that the backward pass reads,
/// and the latest of those. A view of a larger buffer is no choice.
Distribution Outliving::smallest(TensorId tensor) const {
  const std::vector<Distribution>& versions = connections_.versions(tensor);
  const auto cost = [&](const Distribution& version) {
    return std::pair(bytes_of(graph_.tensors[tensor], version, c_.grid),
                     !read_backward(tensor, version));
  };
  const auto view = [&](const PlacedPart& placed) {
    return blocks_.at(placed.device).is_view(tensor, placed.part);
  };
  Distribution best = versions.front();
  for (const Distribution& other : versions) {
    if (std::ranges::none_of(other, view) && cost(other) <= cost(best)) best = other;
  }
  return best;
}

bool Outliving::read_backward(TensorId tensor, const Distribution& version) const {
  for (const OpId id : graph_.segments[c_.facts.segment].backward) {
    const std::vector<TensorId>& inputs = graph_.operators[id].inputs;
    if (std::ranges::find(inputs, tensor) == inputs.end()) continue;
    const Operands operands = operands_of(c_.plan, c_.grid, c_.copy, id);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == tensor && operands.reads[i] == version) return true;
    }
  }
  return false;
}

bool Outliving::keep_part(TensorId tensor, Category category) {
  if (c_.plan.divided(Keep::What::checkpoints).empty() || !connections_.has(tensor)) return false;
  const PlacedPart& first = connections_.versions(tensor).front().front();
  BlockDraft& block = blocks_.at(first.device);
  const bool given = block.was_there(block.slot_of(tensor, first.part));
  const placement::Part whole = given ? first.part : smallest(tensor).front().part;
  const placement::Part part{
      divided_checkpoint(c_.plan, c_.grid, graph_.tensors[tensor], whole.layout)};
  if (part == whole) return false;
  const SlotName name = name_of(graph_, c_.facts, tensor);
  Task task{};
  task.name = name.name + " part";
  cost::Kernel kernel;
  kernel.kind = cost::KernelKind::elementwise;
  kernel.traffic = 2 * bytes_of(graph_.tensors[tensor], part, c_.grid);
  task.work = kernel;
  const program::Operand from = block.read(task, tensor, whole);
  const int slot = block.add_slot(name, part, category);
  block.spare(slot);
  task.writes = {slot};
  task.operations = {{.action = program::Action::select,
                      .inputs = {from},
                      .outputs = {operand(name.tensor, slot, part)}}};
  block.lowered().parts[name.tensor] = block.push(std::move(task));
  out_[name.tensor] = {part.layout, category};
  return true;
}

void Outliving::keep_whole(TensorId tensor, Category category) {
  const auto bytes = [&](const Distribution& version) {
    return bytes_of(graph_.tensors[tensor], version, c_.grid);
  };
  keep_version(tensor, *std::ranges::max_element(connections_.versions(tensor), {}, bytes),
               category);
}

void Outliving::spare(TensorId tensor) {
  for (const auto& [device, part] : connections_.versions(tensor).front()) {
    BlockDraft& block = blocks_.at(device);
    block.spare(block.slot_of(tensor, part));
  }
}

}  // namespace stratagem::lowering

// Layouts where a stage stands on a grid of axes, masks where its devices are listed.
#include "lowering/stages/operands.hpp"

#include <algorithm>

#include "lowering/stages/operator_layout.hpp"
#include "lowering/stages/parts.hpp"

namespace stratagem::lowering {

using placement::Distribution;
using placement::Grid;
using strategies::Plan;

namespace {

Operands on_grid(const Plan& plan, const Grid& grid, model::OpId id) {
  const model::Operator& op = plan.graph().operators[id];
  const std::vector<std::string> split = split_along(plan, grid, id);
  Operands operands;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    operands.reads.push_back({{grid.first_device, {input_layout(op, i, split)}}});
  for (std::size_t i = 0; i < op.outputs.size(); ++i)
    operands.leaves.push_back({{grid.first_device, {output_layout(op, i, split)}}});
  return operands;
}

Operands on_list(const Plan& plan, int copy, model::OpId id) {
  const model::Operator& op = plan.graph().operators[id];
  const OperatorParts parts = parts_of(plan, id, copy);
  Operands operands{std::vector<Distribution>(op.inputs.size()),
                    std::vector<Distribution>(op.outputs.size())};
  for (std::size_t part = 0; part < parts.devices.size(); ++part) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      operands.reads[i].push_back(
          {parts.devices[part], {.mask = input_mask(plan, id, i, parts, part)}});
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
      operands.leaves[i].push_back(
          {parts.devices[part], {.mask = output_mask(plan, id, i, parts, part)}});
  }
  return operands;
}

Distribution whole_everywhere(const model::Tensor& tensor, const Grid& grid) {
  if (grid.listed.empty()) return {{grid.first_device, {placement::Layout(grid.axes.size())}}};
  Distribution all;
  for (const int device : grid.listed)
    all.push_back({device, {.mask = placement::whole(tensor.shape)}});
  return all;
}

}  // namespace

Operands operands_of(const Plan& plan, const Grid& grid, int copy, model::OpId op) {
  return grid.listed.empty() ? on_grid(plan, grid, op) : on_list(plan, copy, op);
}

Distribution first_reading(const Plan& plan, const Grid& grid, int copy,
                           const std::vector<model::OpId>& ops, model::TensorId tensor) {
  for (const model::OpId id : ops) {
    const std::vector<model::TensorId>& inputs = plan.graph().operators[id].inputs;
    const auto found = std::ranges::find(inputs, tensor);
    if (found != inputs.end())
      return operands_of(plan, grid, copy, id).reads[found - inputs.begin()];
  }
  return whole_everywhere(plan.graph().tensors[tensor], grid);
}

}  // namespace stratagem::lowering

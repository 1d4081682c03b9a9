// Chooses for every tensor that is read the version that is cheapest to convert.
#include "lowering/blocks/connections.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/input_error.hpp"
#include "lowering/redistribute/redistribute.hpp"

namespace stratagem::lowering {

using model::OpId;
using model::TensorId;
using placement::AxisRole;
using placement::Conversion;
using placement::Distribution;
using placement::Part;
using placement::PlacedPart;

namespace {

/// A part of an operand of a sum, as partial values where those of all operands on its device are
/// partial alike: along an axis of a grid, or of the same elements.
Part partial_like(Part part, const std::vector<const Part*>& operands) {
  for (std::size_t axis = 0; axis < part.layout.size(); ++axis) {
    const auto partial = [&](const Part* operand) {
      return operand->layout[axis].dim == AxisRole::partial;
    };
    if (part.layout[axis].dim == AxisRole::replica && std::ranges::all_of(operands, partial))
      part.layout[axis] = {AxisRole::partial};
  }
  if (!part.mask) return part;
  const placement::Mask& first = *operands.front()->mask;
  const auto alike = [&](const Part* operand) { return *operand->mask == first; };
  if (first.ranges == part.mask->ranges && std::ranges::all_of(operands, alike)) part.mask = first;
  return part;
}

std::vector<Piece> pieces_of(const Distribution& distribution) {
  std::vector<Piece> result;
  for (const auto& [device, part] : distribution) result.push_back({device, *part.mask});
  return result;
}

}  // namespace

struct Connections::Route {
  Distribution from;
  std::variant<std::vector<Conversion>, Redistribution> steps;
  double cost = 0;
};

Operands Connections::operands(OpId id) const {
  const model::Operator& op = graph_.operators[id];
  Operands operands = operands_of(c_.plan, c_.grid, c_.copy, id);
  if (op.kind != model::OpKind::add && op.kind != model::OpKind::gradient_sum) return operands;
  for (auto* side : {&operands.reads, &operands.leaves}) {
    for (Distribution& one : *side) one = left_partial(op, std::move(one));
  }
  return operands;
}

/// Either all parts or none: else values would be missing.
Distribution Connections::left_partial(const model::Operator& op, Distribution wanted) const {
  const auto sums = [&](TensorId tensor) {
    const auto how = combine_.find(tensor);
    return has(tensor) && how != combine_.end() && how->second == model::Combine::sum;
  };
  if (!std::ranges::all_of(op.inputs, sums)) return wanted;
  Distribution result = wanted;
  for (PlacedPart& placed : result) {
    std::vector<const Part*> operands;
    for (const TensorId tensor : op.inputs) {
      for (const Distribution& version : versions(tensor)) {
        operands.push_back(part_on(version, placed.device));
        if (operands.back() == nullptr || version.size() != wanted.size()) return wanted;
      }
    }
    placed.part = partial_like(std::move(placed.part), operands);
  }
  const auto partial = [](const PlacedPart& placed) { return is_partial(placed.part); };
  return std::ranges::all_of(result, partial) ? result : wanted;
}

bool Connections::held(TensorId tensor, const Distribution& wanted) const {
  return std::ranges::all_of(wanted, [&](const PlacedPart& placed) {
    return blocks_.at(placed.device).holds(tensor, placed.part);
  });
}

Connections::Route Connections::route(TensorId id, const Distribution& from,
                                      const Distribution& wanted) const {
  const std::vector<std::int64_t>& shape = graph_.tensors[id].shape;
  if (from.front().part.mask) {
    Redistribution steps = redistribute(shape, pieces_of(from), pieces_of(wanted));
    double cost = 0;
    for (const auto& [kind, elements] : volume(steps)) cost += elements;
    return {from, std::move(steps), cost};
  }
  const placement::Layout& layout = from.front().part.layout;
  const std::vector<int> sizes = c_.grid.sizes();
  std::vector<Conversion> steps = convert(layout, wanted.front().part.layout, shape, sizes);
  const double cost = conversion_cost(steps, layout, shape, sizes);
  return {from, std::move(steps), cost};
}

Connections::Route Connections::cheapest(TensorId tensor, const Distribution& wanted) const {
  std::optional<Route> best;
  for (const Distribution& version : versions(tensor)) {
    Route one = route(tensor, version, wanted);
    if (!best || one.cost < best->cost) best = std::move(one);
  }
  return std::move(*best);
}

void Connections::move(const SlotName& tensor, const Route& route, bool recomputed) {
  const PlacedPart& first = route.from.front();
  const BlockDraft& source = blocks_.at(first.device);
  const model::Tensor& moved = graph_.tensors[tensor.id];
  const Move move{.tensor = tensor,
                  .combine = combine_[tensor.id],
                  .category = source.slot(source.slot_of(tensor.id, first.part)).category,
                  .backward = moved.role == model::Role::gradient,
                  .recomputed = recomputed,
                  .issued_by = &c_.stack,
                  .purpose = c_.replica};
  if (const auto* steps = std::get_if<Redistribution>(&route.steps))
    return append(*steps, move, blocks_, c_.groups, moved);
  placement::Layout layout = first.part.layout;
  for (const Conversion& step : std::get<std::vector<Conversion>>(route.steps)) {
    BlockDraft& block = blocks_.at(first.device);
    note_ring(step, tensor.id, block.slot_of(tensor.id, {layout}), block);
    append(step, layout, move, c_.grid, blocks_, c_.groups, moved);
    layout = after(std::move(layout), step);
    versions_[tensor.id].push_back({{first.device, {layout}}});
  }
}

/// Is it a gather before attention in a ring, or a reduce-scatter behind it?
void Connections::note_ring(const Conversion& step, TensorId tensor, int slot, BlockDraft& block) {
  if (!step.communicates() || step.axes.size() != 1) return;
  const cost::CollectiveKind kind = step.collective();
  const bool backward = graph_.tensors[tensor].role == model::Role::gradient;
  const bool gathers = kind == cost::CollectiveKind::all_gather && !backward;
  if (!gathers && (kind != cost::CollectiveKind::reduce_scatter || !backward)) return;
  const OpId of = gathers ? block.running() : block.writer_of(slot);
  if (of < 0) return;
  const placement::Axis& axis = c_.grid.axes[step.axes[0]];
  if (c_.plan.placement(forward_of(graph_, of)).ring != axis.name) return;
  block.pass_in_ring(of, axis.size, kind);
  if (gathers) passed_.insert(tensor);
}

void Connections::forget_passed(OpId id, const Operands& operands) {
  if (graph_.operators[id].forward >= 0 || passed_.empty()) return;
  for (std::size_t i = 0; i < operands.reads.size(); ++i) {
    const TensorId tensor = graph_.operators[id].inputs[i];
    if (passed_.erase(tensor) == 0) continue;
    for (const auto& [device, part] : operands.reads[i]) blocks_.at(device).forget(tensor, part);
    std::erase(versions_[tensor], operands.reads[i]);
  }
}

void Connections::obtain(const SlotName& tensor, const Distribution& wanted, bool recomputed) {
  std::vector<Distribution>& versions = versions_[tensor.id];
  expects(!versions.empty(),
          "an operator reads what an earlier one wrote or the segment was given");
  if (!held(tensor.id, wanted)) {
    move(tensor, cheapest(tensor.id, wanted), recomputed);
    std::erase_if(versions, [&](const Distribution& old) { return !held(tensor.id, old); });
  }
  if (std::ranges::find(versions, wanted) == versions.end()) versions.push_back(wanted);
}

}  // namespace stratagem::lowering

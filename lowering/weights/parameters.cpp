// Collects the parameters that the forward blocks of all replicas read.
#include "lowering/weights/parameters.hpp"

#include <algorithm>

#include "base/input_error.hpp"
#include "lowering/stack/casts.hpp"
#include "lowering/stages/shards.hpp"
#include "placement/distribution.hpp"

namespace stratagem::lowering {

using placement::Grid;
using strategies::Plan;

namespace {

using model::TensorId;

/// The grid of a replica is one more place where the parameter is; all places must agree on its
/// parts.
void hold(Holding& holding, const placement::Layout& layout, const Grid& grid,
          const std::string& name) {
  if (holding.grids.empty()) holding.layout = layout;
  const bool same_axes = holding.grids.empty() || holding.grids.front().axes == grid.axes;
  if (holding.layout != layout || !same_axes) {
    throw InputError("", "", "every stage to hold the same part of parameter " + name,
                     "stages that divide it differently (untie it, or put both ends of the model "
                     "on the same ranks)");
  }
  const auto place =
      std::ranges::lower_bound(holding.grids, grid.first_device, {}, &Grid::first_device);
  if (place == holding.grids.end() || *place != grid) holding.grids.insert(place, grid);
}

/// A device holds one part of a parameter, whoever reads it there.
void hold_part(Holding& holding, int device, const placement::Mask& mask, const std::string& name) {
  if (holding.masks.emplace(device, mask).first->second == mask) return;
  throw InputError("", "",
                   "every operator on device " + std::to_string(device) +
                       " to see the same part of parameter " + name,
                   "");
}

/// Parameters that any irregular stage reads.
std::set<TensorId> read_in_parts(const Plan& plan, const Stages& stages) {
  std::set<TensorId> parameters;
  for (const SegmentFacts& facts : stages.facts()) {
    if (!stages.irregular(stages.of(facts.segment))) continue;
    for (const TensorId tensor : facts.tensors) {
      if (plan.graph().tensors[tensor].role == model::Role::parameter) parameters.insert(tensor);
    }
  }
  return parameters;
}

/// How much of a parameter a device holds, and how that is divided further.
void measure(const Plan& plan, const model::Tensor& tensor, const Grid& grid, int device,
             LocalHolding& local) {
  const Holding& holding = *local.holding;
  if (!holding.masks.empty()) {
    local.bytes = bytes_of(tensor, holding.masks.at(device));
    local.shape = shape_of(holding.masks.at(device));
    for (Division* each : {&local.parameter, &local.gradient, &local.step})
      each->bytes = local.bytes;
    return;
  }
  local.grid = grid;
  local.bytes = local_bytes(tensor, holding.layout, grid);
  local.shape = local_shape(tensor, holding.layout, grid);
  local.stays_whole = stays_whole(plan, tensor, local.bytes);
  using What = strategies::Keep::What;
  const auto divide = [&](What what, strategies::Keep::Between gap) {
    Division result;
    if (what != What::parameters || !local.stays_whole)
      result.axes = shard_axes(plan, grid, holding.layout, what, gap);
    result.bytes = shard_bytes(tensor, local.bytes, grid, result.axes);
    return result;
  };
  constexpr auto rest = strategies::Keep::Between::micro_batches;
  local.parameter = divide(What::parameters, rest);
  local.between_passes = divide(What::parameters, strategies::Keep::Between::passes);
  local.gradient = divide(What::gradients, rest);
  local.step = divide(What::states, rest);
}

/// The places of the parameters that a device reads in a segment.
std::vector<int> read_by(const Replica& replica, const NumberedBlock& block, int device) {
  std::vector<int> places;
  for (const auto& [place, layout] : block.lowered.parameters) places.push_back(place);
  if (block.parts.empty()) return places;
  const LoweredBlock& own = block.on(replica.copy, replica.grid.position(device)).lowered;
  for (const auto& [place, mask] : own.parameter_masks) places.push_back(place);
  return places;
}

}  // namespace

void Parameters::hold_on_replica(const Plan& plan, const Stages& stages, const Blocks& blocks,
                                 int index) {
  const Replica& replica = stages.replicas()[index];
  const std::set<TensorId> in_parts = read_in_parts(plan, stages);
  for (const int segment : plan.stages[replica.stage]) {
    const std::vector<TensorId>& tensors = stages.facts(segment).tensors;
    const NumberedBlock& block = *blocks.of(segment).forward;
    for (const auto& [place, layout] : block.lowered.parameters) {
      const model::Tensor& tensor = plan.graph().tensors[tensors[place]];
      Holding& holding = holdings_[tensors[place]];
      holding.replicas.insert(index);
      if (!in_parts.contains(tensors[place])) {
        hold(holding, layout, replica.grid, tensor.name);
        continue;
      }
      for (int i = 0; i < replica.grid.count(); ++i) {
        const std::vector<int> at = replica.grid.coordinates(i);
        hold_part(holding, replica.grid.device(at),
                  mask_at(layout, tensor.shape, replica.grid.sizes(), at), tensor.name);
      }
    }
    for (int i = 0; !block.parts.empty() && i < replica.grid.count(); ++i) {
      for (const auto& [place, mask] : block.on(replica.copy, i).lowered.parameter_masks) {
        Holding& holding = holdings_[tensors[place]];
        holding.replicas.insert(index);
        hold_part(holding, replica.grid.listed[i], mask, plan.graph().tensors[tensors[place]].name);
      }
    }
  }
}

/// Parts with something in common are equal: else no sum of gradients would keep them the same.
void Parameters::check_parts(const model::Graph& graph) const {
  for (const auto& [parameter, holding] : holdings_) {
    std::map<placement::Mask, int> distinct;  // to a device
    for (const auto& [device, mask] : holding.masks) distinct.emplace(mask, device);
    for (const auto& [one, device] : distinct) {
      for (const auto& [other, there] : distinct) {
        if (one == other || !overlap(one, other)) continue;
        throw InputError("", "",
                         "devices " + std::to_string(device) + " and " + std::to_string(there) +
                             " to see equal parts of parameter " + graph.tensors[parameter].name +
                             ", or parts that share nothing",
                         "");
      }
    }
  }
}

Parameters::Parameters(const Plan& plan, const Stages& stages, const Blocks& blocks) {
  for (std::size_t replica = 0; replica < stages.replicas().size(); ++replica)
    hold_on_replica(plan, stages, blocks, static_cast<int>(replica));
  check_parts(plan.graph());
  for (const DeviceClass& device_class : stages.device_classes()) {
    std::map<TensorId, LocalHolding>& here = on_class_.emplace_back();
    const int device = device_class.devices.front();
    for (const int index : device_class.replicas) {
      const Replica& replica = stages.replicas()[index];
      for (const int segment : plan.stages[replica.stage]) {
        for (const int place : read_by(replica, *blocks.of(segment).forward, device)) {
          const TensorId parameter = stages.facts(segment).tensors[place];
          const model::Tensor& tensor = plan.graph().tensors[parameter];
          const Holding& holding = holdings_.at(parameter);
          LocalHolding& local = here[parameter];
          local.holding = &holding;
          measure(plan, tensor, replica.grid, device, local);
          if (const TensorId gradient = plan.graph().gradient_of[parameter]; gradient >= 0)
            local.gradient_scale =
                model::size_of(plan.graph().tensors[gradient].type) / model::size_of(tensor.type);
          local.gathered_scale = read_scale(plan.graph(), parameter, segment);
          const auto at = std::ranges::lower_bound(local.segments, segment);
          if (at == local.segments.end() || *at != segment) local.segments.insert(at, segment);
        }
      }
    }
  }
}

}  // namespace stratagem::lowering

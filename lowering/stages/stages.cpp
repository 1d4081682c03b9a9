// Puts stages on grids, groups devices into device classes, and finds the tensors that flow between
// stages.
#include "lowering/stages/stages.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "base/input_error.hpp"
#include "lowering/stages/operands.hpp"

namespace stratagem::lowering {

using placement::Grid;
using strategies::Plan;

namespace {

StageTransfer transfer_between(const Grid& from, const Grid& to) {
  if (from == to) return StageTransfer::stays;
  if (from.axes != to.axes) return StageTransfer::redistributes;
  const std::vector<int> here = from.devices();
  const std::vector<int> there = to.devices();
  std::vector<int> shared;
  std::ranges::set_intersection(here, there, std::back_inserter(shared));
  return shared.empty() ? StageTransfer::sends : StageTransfer::redistributes;
}

}  // namespace

Stages::Stages(const Plan& plan) : facts_(segment_facts(plan.graph())) {
  place_segments(plan);
  find_flows(plan.graph());
  find_recycled(plan.graph());
  find_transfers(plan);
  place_devices(plan);
}

void Stages::find_transfers(const Plan& plan) {
  for (const StageFlow& flow : flows_) {
    std::set<std::pair<int, int>> pairs;  // replicas between which a micro-batch goes
    for (int m = 0; m < plan.micro_batches; ++m) {
      pairs.emplace(replica(flow.from, plan.copy_of(flow.from, m)),
                    replica(flow.to, plan.copy_of(flow.to, m)));
    }
    std::set<StageTransfer> found;
    for (const auto& [producer, reader] : pairs) {
      const Grid& from = replicas_[producer].grid;
      const Grid& to = replicas_[reader].grid;
      const bool apart = from != to && (irregular(flow.from) || irregular(flow.to));
      found.insert(apart ? StageTransfer::redistributes : transfer_between(from, to));
    }
    // Where one micro-batch stays and another is sent, the general path does for both.
    transfers_[std::minmax(flow.from, flow.to)] =
        found.size() == 1 ? *found.begin() : StageTransfer::redistributes;
  }
}

void Stages::place_segments(const Plan& plan) {
  of_segment_.assign(facts_.size(), -1);
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (const int segment : plan.stages[stage]) of_segment_[segment] = static_cast<int>(stage);
    place_stage(plan, static_cast<int>(stage));
  }
  for (std::size_t segment = 0; segment < of_segment_.size(); ++segment) {
    if (of_segment_[segment] < 0) {
      throw InputError("", "", "every segment in a stage",
                       plan.graph().segments[segment].name + " in none");
    }
  }
}

void Stages::place_stage(const Plan& plan, int stage) {
  const int copies = plan.copies().of(stage);
  first_replica_.push_back(static_cast<int>(replicas_.size()));
  std::vector<std::optional<Grid>> grids;
  grids.reserve(copies);
  for (int copy = 0; copy < copies; ++copy)
    grids.push_back(grid_of(plan, plan.stages[stage], copy));
  const bool regular = std::ranges::all_of(grids, &std::optional<Grid>::has_value);
  for (int copy = 0; copy < copies; ++copy) {
    if (regular) {
      replicas_.push_back({stage, copy, *grids[copy]});
      continue;
    }
    Grid grid;
    grid.listed = devices_of(plan, plan.stages[stage], copy);
    grid.first_device = grid.listed.front();
    grid.axes = {{"", static_cast<int>(grid.listed.size()), 1}};
    replicas_.push_back({stage, copy, grid});
  }
}

std::set<int> Stages::stages_per_device(const Plan& plan) const {
  std::set<int> stages;
  for (const StageFlow& flow : flows_) {
    if (transfer(flow.from, flow.to) == StageTransfer::redistributes)
      stages.insert({flow.from, flow.to});
  }
  std::set<model::TensorId> parameters;  // of irregular stages
  const auto each_parameter = [&](int stage, const auto& visit) {
    for (const int segment : plan.stages[stage]) {
      for (const model::TensorId tensor : facts_[segment].tensors) {
        if (plan.graph().tensors[tensor].role == model::Role::parameter) visit(tensor);
      }
    }
  };
  for (int stage = 0; stage < count(); ++stage) {
    if (!irregular(stage)) continue;
    stages.insert(stage);
    each_parameter(stage, [&](model::TensorId tensor) { parameters.insert(tensor); });
  }
  for (int stage = 0; stage < count(); ++stage) {
    each_parameter(stage, [&](model::TensorId tensor) {
      if (parameters.contains(tensor)) stages.insert(stage);
    });
  }
  return stages;
}

void Stages::place_devices(const Plan& plan) {
  std::map<int, std::vector<int>> replicas_of;  // by device
  for (std::size_t replica = 0; replica < replicas_.size(); ++replica) {
    const Grid& grid = replicas_[replica].grid;
    for (int i = 0; i < grid.count(); ++i) {
      std::vector<int>& here = replicas_of[grid.device(grid.coordinates(i))];
      if (!here.empty() && here.back() == static_cast<int>(replica)) {
        throw InputError("", "", "one part of an operator on each device",
                         "two of stage " + std::to_string(replicas_[replica].stage) + " on one");
      }
      here.push_back(static_cast<int>(replica));
    }
  }
  const std::set<int> apart = stages_per_device(plan);
  std::map<std::vector<int>, int> known;
  for (const auto& [device, replicas] : replicas_of) {
    const auto next = static_cast<int>(class_of_device_.size());
    if (device != next) {
      throw InputError("", "", "a part of the plan on device " + std::to_string(next), "none");
    }
    std::vector<int> key = replicas;
    if (std::ranges::any_of(replicas, [&](int s) { return apart.contains(replicas_[s].stage); }))
      key.push_back(-1 - device);
    const auto [found, fresh] = known.emplace(key, static_cast<int>(device_classes_.size()));
    if (fresh) device_classes_.push_back({.replicas = replicas, .devices = {}});
    device_classes_[found->second].devices.push_back(device);
    class_of_device_.push_back(found->second);
  }
}

void Stages::find_flows(const model::Graph& graph) {
  for (const SegmentFacts& facts : facts_) {
    for (const model::TensorId tensor : facts.activations_out) producer_[tensor] = facts.segment;
  }
  std::map<std::pair<int, int>, bool> returns;
  for (const SegmentFacts& facts : facts_) {
    for (const model::TensorId tensor : facts.activations_in) {
      if (!reader_.emplace(tensor, facts.segment).second) {
        throw InputError("", "/model", "every activation to be read by one segment besides its own",
                         graph.tensors[tensor].name);
      }
      const std::pair border(of(producer(tensor)), of(facts.segment));
      if (border.first != border.second) returns[border] |= graph.gradient_of[tensor] >= 0;
    }
  }
  for (const auto& [border, back] : returns)
    flows_.push_back({.from = border.first, .to = border.second, .returns = back});
}

void Stages::find_recycled(const model::Graph& graph) {
  for (const auto& [output, input] : graph.recycled) {
    Recycled one{.tensor = output};
    for (const model::Operator& op : graph.operators) {
      if (op.pass != model::Pass::forward) continue;
      if (std::ranges::count(op.outputs, output) > 0) one.producer = op.segment;
      if (std::ranges::count(op.inputs, input) > 0) one.reader = op.segment;
    }
    recycled_.push_back(one);
    const int from = of(one.producer);
    const int to = of(one.reader);
    if (from != to) flows_.push_back({.from = from, .to = to, .recycled = true});
  }
}

}  // namespace stratagem::lowering

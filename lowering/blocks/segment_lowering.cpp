// Connects and runs operators, those that the stack fuses at once.
#include "lowering/blocks/segment_lowering.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/stack/fusions.hpp"
#include "lowering/stack/kernels.hpp"
#include "lowering/stack/random_state.hpp"
#include "model/operator_kinds.hpp"

namespace stratagem::lowering {

using model::OpId;
using model::TensorId;
using placement::Distribution;
using placement::PlacedPart;
using program::Category;

namespace {

std::vector<int> devices_in(const Distribution& distribution) {
  std::vector<int> devices;
  for (const PlacedPart& placed : distribution) devices.push_back(placed.device);
  return devices;
}

}  // namespace

SegmentLowering::SegmentLowering(const BlockContext& context, const std::string& pass)
    : c_(context),
      graph_(context.graph),
      connections_(context, blocks_),
      outliving_(context, blocks_, connections_) {
  devices_ = c_.grid.listed;
  if (devices_.empty()) devices_ = {c_.grid.first_device};
  for (const int device : devices_) {
    const auto block = blocks_.try_emplace(device, graph_, c_.grid,
                                           pass + " " + graph_.segments[c_.facts.segment].name);
    tasks_.try_emplace(device, c_, block.first->second);
  }
}

void SegmentLowering::import(TensorId tensor, const Border& border) {
  const Distribution version = distribution_at(border, c_.grid);
  for (const auto& [device, part] : version) {
    if (border.category == Category::whole_gradients) {
      tasks_.at(device).weights().import(name_of(graph_, c_.facts, tensor), part);
    } else {
      blocks_.at(device).import(name_of(graph_, c_.facts, tensor), part, border.category);
    }
  }
  if (border.category != Category::whole_gradients) connections_.add(tensor, version);
}

void SegmentLowering::run(const std::vector<OpId>& ops, bool recomputed) {
  for (std::size_t i = 0; i < ops.size();) {
    const std::vector<Running> group = next_group(std::span(ops).subspan(i));
    run_group(group, recomputed);
    i += group.size();
  }
}

/// The longest group that the stack fuses and in which every operator reads the first output of the
/// one before it, as that one leaves it; or one operator.
std::vector<SegmentLowering::Running> SegmentLowering::next_group(std::span<const OpId> ops) const {
  std::vector<Running> group = {{ops.front(), connections_.operands(ops.front())}};
  for (const std::size_t length : fused_lengths(graph_, c_.stack, ops)) {
    std::vector<Running> longer = {group.front()};
    for (const OpId id : ops.subspan(1, length - 1)) {
      Running next{id, connections_.operands(id)};
      const Running& before = longer.back();
      const bool follows =
          graph_.operators[id].inputs[0] == graph_.operators[before.id].outputs[0] &&
          next.operands.reads[0] == before.operands.leaves[0];
      if (!follows) break;
      longer.push_back(std::move(next));
    }
    if (longer.size() == length) return longer;
  }
  return group;
}

void SegmentLowering::run_group(const std::vector<Running>& group, bool recomputed) {
  const Running& last = group.back();
  const std::vector<int> devices = devices_in(last.operands.leaves.front());
  const std::string name = stack_name(graph_.operators[last.id]);
  for (auto& [device, block] : blocks_) block.begin(last.id);
  copy_random_state("before " + name, devices);
  for (std::size_t i = 0; i < group.size(); ++i) obtain_operands(group[i], i > 0, recomputed);
  for (std::size_t part = 0; part < devices.size(); ++part) {
    std::vector<OperatorPart> parts;
    for (const Running& op : group) parts.push_back(part_of(op, part));
    tasks_.at(devices[part]).run(parts, recomputed);
  }
  for (const Running& op : group) note_results(op);
  for (const Running& op : group) {
    expect_ring(op.id);
    connections_.forget_passed(op.id, op.operands);
  }
  copy_random_state("after " + name, devices);
  for (auto& [device, block] : blocks_) block.begin(-1);
}

/// Where a plan says so, attention reads keys and values that pass in a ring.
void SegmentLowering::expect_ring(OpId id) const {
  if (c_.plan.placement(forward_of(graph_, id)).ring.empty()) return;
  for (const auto& [device, block] : blocks_) {
    if (block.reads_what_passes(id)) continue;
    throw InputError("", c_.plan.said.rings,
                     "keys and values of " + graph_.operators[id].name +
                         " that are divided along the ring, and moved in no other way before it",
                     "");
  }
}

void SegmentLowering::copy_random_state(const std::string& when, const std::vector<int>& devices) {
  const std::optional<program::Task> copies = random_state_copies(c_.stack, when);
  if (!copies) return;
  for (const int device : devices) blocks_.at(device).push(*copies);
}

void SegmentLowering::copy_random_state(const std::string& when) {
  std::set<int> busy;
  for (const OpId id : graph_.segments[c_.facts.segment].forward) {
    const std::vector<int> devices = devices_in(connections_.operands(id).leaves.front());
    busy.insert(devices.begin(), devices.end());
  }
  copy_random_state(when, {busy.begin(), busy.end()});
}

/// `inner`: the first operand comes from the operator before it in the same kernel.
void SegmentLowering::obtain_operands(const Running& running, bool inner, bool recomputed) {
  const model::Operator& op = graph_.operators[running.id];
  for (std::size_t i = inner ? 1 : 0; i < op.inputs.size(); ++i) {
    const model::Role role = graph_.tensors[op.inputs[i]].role;
    if (model::is_given(role) || role == model::Role::parameter) continue;
    connections_.obtain(name_of(graph_, c_.facts, op.inputs[i]), running.operands.reads[i],
                        recomputed);
  }
}

OperatorPart SegmentLowering::part_of(const Running& running, std::size_t part) {
  const Operands& operands = running.operands;
  OperatorPart result{.id = running.id};
  for (const Distribution& one : operands.reads) result.reads.push_back(one[part].part);
  for (const Distribution& one : operands.leaves) result.leaves.push_back(one[part].part);
  result.replicas = static_cast<int>(
      std::ranges::count(operands.leaves.front(), result.leaves.front(), &PlacedPart::part));
  return result;
}

void SegmentLowering::note_results(const Running& running) {
  const model::Operator& op = graph_.operators[running.id];
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    connections_.set_combine(op.outputs[i], op.combine);
    if (!tasks_.begin()->second.weights().is_gradient_of_parameter(op.outputs[i]))
      connections_.add(op.outputs[i], running.operands.leaves[i]);
  }
}

void SegmentLowering::gather_all() {
  for (const OpId id : graph_.segments[c_.facts.segment].forward) {
    const std::vector<TensorId>& inputs = graph_.operators[id].inputs;
    const Operands operands = connections_.operands(id);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (graph_.tensors[inputs[i]].role != model::Role::parameter) continue;
      for (const auto& [device, part] : operands.reads[i])
        tasks_.at(device).weights().gather(name_of(graph_, c_.facts, inputs[i]), part);
    }
  }
}

LoweredPass SegmentLowering::finish() {
  LoweredPass pass{{}, outliving_.out()};
  for (const int device : devices_) pass.blocks.push_back(blocks_.at(device).finish());
  return pass;
}

}  // namespace stratagem::lowering

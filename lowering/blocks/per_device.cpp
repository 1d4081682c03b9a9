// Goes through the operators of a pass part by part, and tracks where every tensor is.
#include "lowering/blocks/per_device.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/blocks/device_block.hpp"
#include "lowering/blocks/moves.hpp"
#include "lowering/blocks/passes.hpp"
#include "lowering/redistribute/redistribute.hpp"
#include "lowering/stack/casts.hpp"
#include "lowering/stack/kernels.hpp"
#include "lowering/stages/parts.hpp"
#include "placement/local_part.hpp"

namespace stratagem::lowering {

using placement::Mask;
using program::Category;
using program::Task;

namespace {

using model::TensorId;

/// A whole tensor, as its parts lie on devices after an operator wrote or before one read it.
using Pieces = std::vector<Piece>;

Pieces pieces_read(const strategies::Plan& plan, model::OpId op, std::size_t i,
                   const OperatorParts& parts) {
  Pieces pieces;
  for (std::size_t part = 0; part < parts.devices.size(); ++part)
    pieces.push_back({parts.devices[part], input_mask(plan, op, i, parts, part)});
  return pieces;
}

class PerDeviceLowering {
 public:
  PerDeviceLowering(const BlockContext& context, const std::string& pass)
      : c_(context), graph_(context.graph) {
    const model::Segment& segment = graph_.segments[c_.facts.segment];
    for (const int device : c_.grid.listed) {
      blocks_.try_emplace(device, graph_, pass + " " + segment.name);
      results_[device];
    }
    for (const model::OpId op : segment.forward) {
      const OperatorParts parts = parts_of(c_.plan, op, c_.copy);
      busy_.insert(parts.devices.begin(), parts.devices.end());
    }
  }

  void import(TensorId tensor, const Border& border) {
    Pieces& pieces = versions_[tensor].emplace_back();
    for (std::size_t i = 0; i < border.masks.size(); ++i) {
      if (!border.masks[i]) continue;
      const int device = c_.grid.listed[i];
      const int slot =
          blocks_.at(device).import(name_of(tensor), *border.masks[i], border.category);
      imported_[tensor].emplace_back(device, slot);
      pieces.push_back({device, *border.masks[i]});
    }
  }

  void run(const std::vector<model::OpId>& ops, bool recomputed) {
    recomputed_ = recomputed;
    for (const model::OpId id : ops) run_operator(id);
  }

  /// On all devices that run any operator of the segment.
  void copy_random_state(int copies) { copy_random_state(copies, {busy_.begin(), busy_.end()}); }

  /// Sums up a tensor that leaves the segment; it outlives the blocks.
  void leave(TensorId tensor, Category category) {
    if (!versions_.contains(tensor)) {
      throw InputError("", "/model", "what leaves a segment to be computed there",
                       graph_.tensors[tensor].name);
    }
    Pieces full = versions_.at(tensor).front();
    for (Piece& piece : full) piece.mask.value = {};
    obtain(tensor, full);
    outlive(tensor, full, category);
  }

  /// A tensor that the backward pass reads: of its versions that of fewest bytes; among equals one
  /// that the backward pass reads, and the latest of those.
  void keep(TensorId tensor, Category category) {
    const auto found = versions_.find(tensor);
    if (found == versions_.end()) return;
    const auto cost = [&](const Pieces& pieces) {
      Bytes bytes;
      for (const Piece& piece : pieces) bytes += bytes_of(graph_.tensors[tensor], piece.mask);
      return std::pair(bytes, !read_backward(tensor, pieces));
    };
    const auto view = [&](const Piece& piece) {
      return blocks_.at(piece.device).is_view(tensor, piece.mask);
    };
    Pieces best = found->second.front();
    for (const Pieces& other : found->second) {
      if (std::ranges::none_of(other, view) && cost(other) <= cost(best)) best = other;
    }
    outlive(tensor, best, category);
  }

  /// Lowering refuses plans that divide checkpoints on irregular stages.
  static bool keep_part(TensorId /*tensor*/, Category /*category*/) { return false; }
  void keep_whole(TensorId tensor, Category /*category*/) { spare(tensor); }

  void spare(TensorId tensor) {
    for (const auto& [device, slot] : imported_.at(tensor)) blocks_.at(device).spare(slot);
  }

  PerDeviceBlocks finish() {
    PerDeviceBlocks all{{}, std::move(out_)};
    for (const int device : c_.grid.listed) {
      LoweredBlock& result = results_.at(device);
      DeviceBlock& block = blocks_.at(device);
      result.first_readers = block.first_readers();
      result.last_writer = block.last_writer();
      result.first_addition = block.first_addition();
      result.block = block.finish();
      all.devices.push_back(std::move(result));
    }
    return all;
  }

 private:
  [[nodiscard]] int place(TensorId tensor) const { return c_.facts.place.at(tensor); }
  [[nodiscard]] model::Role role(TensorId tensor) const { return graph_.tensors[tensor].role; }

  [[nodiscard]] SlotName name_of(TensorId tensor) const {
    const std::string& name = graph_.tensors[tensor].name;
    const std::string prefix = graph_.segments[c_.facts.segment].name + ".";
    return {tensor, place(tensor), name.starts_with(prefix) ? name.substr(prefix.size()) : name};
  }

  [[nodiscard]] bool read_backward(TensorId tensor, const Pieces& pieces) const {
    for (const model::OpId id : graph_.segments[c_.facts.segment].backward) {
      const model::Operator& op = graph_.operators[id];
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] == tensor &&
            pieces_read(c_.plan, id, i, parts_of(c_.plan, id, c_.copy)) == pieces)
          return true;
      }
    }
    return false;
  }

  void outlive(TensorId tensor, const Pieces& pieces, Category category) {
    Border border{{}, category, std::vector<std::optional<Mask>>(c_.grid.listed.size())};
    for (const Piece& piece : pieces) {
      DeviceBlock& block = blocks_.at(piece.device);
      block.keep(block.slot_of(tensor, piece.mask), category);
      border.masks[std::ranges::find(c_.grid.listed, piece.device) - c_.grid.listed.begin()] =
          piece.mask;
    }
    out_[place(tensor)] = std::move(border);
  }

  void copy_random_state(int copies, const std::vector<int>& devices) {
    if (copies == 0) return;
    for (const int device : devices) {
      blocks_.at(device).push(random_state_copies(copies, c_.stack));
    }
  }

  void run_operator(model::OpId id) {
    const model::Operator& op = graph_.operators[id];
    const OperatorParts parts = parts_of(c_.plan, id, c_.copy);
    const cost::OperatorFacts facts = facts_of(op, c_.stack);
    copy_random_state(facts.state_copies_before, parts.devices);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) prepare(id, i, parts);
    std::vector<Pieces> written(op.outputs.size());
    for (std::size_t part = 0; part < parts.devices.size(); ++part)
      run_part(id, parts, part, written);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      combine_[op.outputs[i]] = op.combine;
      if (!is_parameter_gradient(op.outputs[i]))
        versions_[op.outputs[i]].push_back(std::move(written[i]));
    }
    copy_random_state(facts.state_copies_after, parts.devices);
  }

  /// Brings every part its share of an operand.
  void prepare(model::OpId id, std::size_t i, const OperatorParts& parts) {
    const TensorId tensor = graph_.operators[id].inputs[i];
    if (role(tensor) == model::Role::input) return;  // no buffer of the plan
    const Pieces wanted = pieces_read(c_.plan, id, i, parts);
    if (role(tensor) == model::Role::parameter) return see_parameter(tensor, wanted);
    obtain(tensor, wanted);
  }

  void see_parameter(TensorId tensor, const Pieces& wanted) {
    for (const Piece& piece : wanted) {
      const auto [found, fresh] =
          results_.at(piece.device).parameter_masks.emplace(place(tensor), piece.mask);
      if (!fresh && found->second != piece.mask) {
        throw InputError("", "",
                         "every operator on device " + std::to_string(piece.device) +
                             " to see the same part of parameter " + graph_.tensors[tensor].name,
                         "");
      }
    }
  }

  void run_part(model::OpId id, const OperatorParts& parts, std::size_t part,
                std::vector<Pieces>& written) {
    const model::Operator& op = graph_.operators[id];
    const int device = parts.devices[part];
    DeviceBlock& block = blocks_.at(device);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (casts_operand(graph_, op, op.inputs[i], c_.precision))
        cast(block, op.inputs[i], input_mask(c_.plan, id, i, parts, part));
    }
    Task task{};
    task.name = name_within(graph_, op) + (recomputed_ ? " again" : "");
    task.recomputed = recomputed_;
    program::Operation operation{.op = c_.facts.place_of_operator.at(id),
                                 .replicas = replicas(id, parts, part)};
    Shapes inputs;
    Shapes outputs;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const Mask mask = input_mask(c_.plan, id, i, parts, part);
      inputs.push_back(shape_of(mask));
      const bool bufferless =
          role(op.inputs[i]) == model::Role::input || role(op.inputs[i]) == model::Role::parameter;
      operation.inputs.push_back(
          bufferless ? program::Operand{.tensor = place(op.inputs[i]), .masks = {mask}}
                     : block.read(task, op.inputs[i], mask));
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const Mask mask = output_mask(c_.plan, id, i, parts, part);
      outputs.push_back(shape_of(mask));
      operation.outputs.push_back(write(task, op.outputs[i], mask, id, device));
      operation.adds = operation.adds || is_parameter_gradient(op.outputs[i]);
      written[i].push_back({device, mask});
    }
    task.operations = {std::move(operation)};
    if (held_in_another_type(graph_, op)) {
      const TensorId gradient = op.outputs[0];
      const double scale = model::size_of(computed_type(graph_, op, gradient)) /
                           model::size_of(graph_.tensors[gradient].type);
      block.scratch(task, name_of(gradient),
                    scale * bytes_of(graph_.tensors[gradient], written[0].back().mask));
    }
    task.work = kernel(op, inputs, outputs, written);
    block.push(std::move(task));
  }

  /// The parts that leave the same of an operator's first output as a part does.
  [[nodiscard]] int replicas(model::OpId id, const OperatorParts& parts, std::size_t part) const {
    const Mask own = output_mask(c_.plan, id, 0, parts, part);
    int count = 0;
    for (std::size_t other = 0; other < parts.devices.size(); ++other)
      count += output_mask(c_.plan, id, 0, parts, other) == own ? 1 : 0;
    return count;
  }

  /// Casts an operand of one product; the next one casts it again.
  void cast(DeviceBlock& block, TensorId tensor, const Mask& mask) {
    const model::DataType type = graph_.tensors[tensor].type;
    const Bytes bytes = bytes_of(graph_.tensors[tensor], mask);
    Task task{};
    task.name = name_of(tensor).name + " to " + model::to_text(c_.precision.products);
    task.recomputed = recomputed_;
    block.read(task, tensor, mask);
    block.scratch(task, name_of(tensor), copies_of(bytes, type, c_.precision));
    task.work = cast_kernel(bytes, type, c_.precision);
    block.push(std::move(task));
  }

  [[nodiscard]] cost::Kernel kernel(const model::Operator& op, const Shapes& inputs,
                                    const Shapes& outputs,
                                    const std::vector<Pieces>& written) const {
    cost::Kernel kernel = on_cast_operands(kernel_of(graph_, op, inputs, outputs, c_.stack), graph_,
                                           op, c_.precision);
    if (op.pass == model::Pass::weight_gradient) {
      const model::Tensor& gradient = graph_.tensors[op.outputs[0]];
      hold_gradient(kernel, graph_, op,
                    bytes_of(gradient, written[0].back().mask) / model::size_of(gradient.type),
                    true, c_.stack);
    }
    return kernel;
  }

  program::Operand write(Task& task, TensorId tensor, const Mask& mask, model::OpId id,
                         int device) {
    if (is_parameter_gradient(tensor)) {
      results_.at(device).gradient_masks[place(tensor)][id] = mask;
      blocks_.at(device).add_to_resident(place(tensor));
      return {.tensor = place(tensor), .masks = {mask}};
    }
    return blocks_.at(device).write(task, name_of(tensor), mask, category_when_written(tensor));
  }

  [[nodiscard]] Category category_when_written(TensorId tensor) const {
    if (role(tensor) == model::Role::statistic) return Category::statistics;
    return recomputed_ && c_.recomputation.inner(tensor) ? Category::activations
                                                         : Category::temporaries;
  }

  [[nodiscard]] bool is_parameter_gradient(TensorId gradient) const {
    return role(gradient) == model::Role::gradient &&
           std::ranges::any_of(c_.facts.tensors, [&](TensorId tensor) {
             return role(tensor) == model::Role::parameter &&
                    graph_.gradient_of[tensor] == gradient;
           });
  }

  [[nodiscard]] bool held(TensorId tensor, const Pieces& pieces) const {
    return std::ranges::all_of(pieces, [&](const Piece& piece) {
      return blocks_.at(piece.device).holds(tensor, piece.mask);
    });
  }

  /// Moves the version that is cheapest to move, unless all that is wanted is there.
  void obtain(TensorId tensor, const Pieces& wanted) {
    std::vector<Pieces>& versions = versions_[tensor];
    expects(!versions.empty(), "an operator reads what an earlier one wrote or was given");
    if (!held(tensor, wanted)) {
      const auto [from, redistribution] = cheapest(tensor, wanted);
      const Piece& first = versions[from].front();
      const DeviceBlock& source = blocks_.at(first.device);
      append(redistribution,
             {.tensor = name_of(tensor),
              .combine = combine_[tensor],
              .category = source.slot(source.slot_of(tensor, first.mask)).category,
              .backward = role(tensor) == model::Role::gradient,
              .recomputed = recomputed_,
              .blocking = true,
              .held = true,
              .purpose = c_.replica},
             blocks_, c_.groups, graph_.tensors[tensor]);
      std::erase_if(versions, [&](const Pieces& old) { return !held(tensor, old); });
    }
    if (std::ranges::find(versions, wanted) == versions.end()) versions.push_back(wanted);
  }

  [[nodiscard]] std::pair<std::size_t, Redistribution> cheapest(TensorId tensor,
                                                                const Pieces& wanted) {
    std::pair<std::size_t, Redistribution> best;
    std::optional<double> least;
    const std::vector<Pieces>& versions = versions_.at(tensor);
    for (std::size_t from = 0; from < versions.size(); ++from) {
      Redistribution redistribution =
          redistribute(graph_.tensors[tensor].shape, versions[from], wanted);
      double cost = 0;
      for (const auto& [kind, elements] : volume(redistribution)) cost += elements;
      if (least && cost >= *least) continue;
      least = cost;
      best = {from, std::move(redistribution)};
    }
    return best;
  }

  const BlockContext& c_;
  const model::Graph& graph_;
  std::map<int, DeviceBlock> blocks_;  ///< by device, as the next
  std::map<int, LoweredBlock> results_;
  std::set<int> busy_;  ///< devices with a part of an operator
  std::map<int, Border> out_;
  std::map<TensorId, std::vector<Pieces>> versions_;
  std::map<TensorId, std::vector<std::pair<int, int>>> imported_;  ///< device, slot
  std::map<TensorId, model::Combine> combine_;
  bool recomputed_ = false;
};

}  // namespace

PerDeviceBlocks forward_per_device(const BlockContext& context, const std::map<int, Border>& in,
                                   const std::map<int, Category>& leaves, ForwardRun run) {
  PerDeviceLowering lowering(context, run == ForwardRun::again ? "F again" : "F");
  forward_pass(lowering, context, in, leaves, run);
  return lowering.finish();
}

PerDeviceBlocks backward_per_device(const BlockContext& context, const std::map<int, Border>& kept,
                                    const std::map<int, Border>& in, BackwardPart part) {
  PerDeviceLowering lowering(context, part == BackwardPart::weight ? "W" : "B");
  backward_pass(lowering, context, kept, in, part);
  return lowering.finish();
}

std::vector<std::optional<Mask>> masks_read(const strategies::Plan& plan,
                                            const placement::Grid& grid, int copy,
                                            const std::vector<model::OpId>& ops, TensorId tensor) {
  const std::size_t devices = grid.listed.size();
  for (const model::OpId id : ops) {
    const std::vector<TensorId>& inputs = plan.graph().operators[id].inputs;
    const auto found = std::ranges::find(inputs, tensor);
    if (found == inputs.end()) continue;
    std::vector<std::optional<Mask>> masks(devices);
    const auto i = static_cast<std::size_t>(found - inputs.begin());
    for (const Piece& piece : pieces_read(plan, id, i, parts_of(plan, id, copy)))
      masks[std::ranges::find(grid.listed, piece.device) - grid.listed.begin()] = piece.mask;
    return masks;
  }
  return std::vector<std::optional<Mask>>(devices,
                                          placement::whole(plan.graph().tensors[tensor].shape));
}

}  // namespace stratagem::lowering

// What a plan must communicate: a second, naive walk over the operators, in bytes that every device
// sends and receives.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "lowering/redistribute/steps.hpp"
#include "lowering/stages/operands.hpp"
#include "lowering/stages/segment.hpp"
#include "placement/distribution.hpp"
#include "tests/sim/random_plan.hpp"

namespace stratagem::sim {

struct Volumes {
  double within = 0;     ///< conversions of layouts
  double gradients = 0;  ///< reductions of weight gradients
  double sent = 0;       ///< to a stage on an equal grid

  Volumes& operator+=(const Volumes& other) {
    within += other.within;
    gradients += other.gradients;
    sent += other.sent;
    return *this;
  }
};

/// One pass of one segment.
class PassVolume {
 public:
  PassVolume(const RandomPlan& random, const placement::Grid& grid)
      : graph_(*random.graph), plan_(*random.plan), grid_(grid) {}

  void import(model::TensorId tensor, const placement::Layout& layout) {
    held_[tensor] = {{layout, new_buffer(tensor, layout)}};
  }

  void run(const std::vector<model::OpId>& ops) {
    for (const model::OpId id : ops) {
      const model::Operator& op = graph_.operators[id];
      const std::vector<lowering::SplitAlong> split = lowering::split_along(plan_, grid_, id);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const model::Role role = graph_.tensors[op.inputs[i]].role;
        if (role != model::Role::input && role != model::Role::parameter)
          obtain(op.inputs[i], summed(op, lowering::input_layout(op, i, split)));
      }
      for (std::size_t i = 0; i < op.outputs.size(); ++i) {
        const placement::Layout layout = summed(op, lowering::output_layout(op, i, split));
        held_[op.outputs[i]].push_back({layout, new_buffer(op.outputs[i], layout)});
      }
    }
  }

  /// The layout without partial values in which a tensor leaves.
  placement::Layout leave(model::TensorId tensor) {
    placement::Layout full = held_.at(tensor).front().layout;
    std::ranges::replace(full, placement::AxisRole{placement::AxisRole::partial},
                         placement::AxisRole{placement::AxisRole::replica});
    obtain(tensor, full);
    return full;
  }
  /// The layout of the smallest buffer of which it is all; among equals one that `readers` read,
  /// the latest of those.
  [[nodiscard]] const placement::Layout& smallest(model::TensorId tensor,
                                                  const std::vector<model::OpId>& readers) const {
    const auto cost = [&](const Held& one) {
      return std::pair(buffers_[one.buffer], !read_so(tensor, one.layout, readers));
    };
    const std::vector<Held>& held = held_.at(tensor);
    const Held* best = &held.front();
    for (const Held& one : held) {
      const bool cut =
          placement::local_bytes(graph_.tensors[tensor], one.layout, grid_) < buffers_[one.buffer];
      if (!cut && cost(one) <= cost(*best)) best = &one;
    }
    return best->layout;
  }
  [[nodiscard]] bool has(model::TensorId tensor) const { return held_.contains(tensor); }
  [[nodiscard]] double bytes() const { return bytes_; }

 private:
  struct Held {
    placement::Layout layout;
    std::size_t buffer;
  };

  std::size_t new_buffer(model::TensorId tensor, const placement::Layout& layout) {
    buffers_.push_back(placement::local_bytes(graph_.tensors[tensor], layout, grid_));
    return buffers_.size() - 1;
  }

  bool read_so(model::TensorId tensor, const placement::Layout& layout,
               const std::vector<model::OpId>& readers) const {
    for (const model::OpId id : readers) {
      const model::Operator& op = graph_.operators[id];
      const std::vector<lowering::SplitAlong> split = lowering::split_along(plan_, grid_, id);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] == tensor && lowering::input_layout(op, i, split) == layout) return true;
      }
    }
    return false;
  }

  /// Sums of partial sums are partial sums, where the plan does not divide them.
  placement::Layout summed(const model::Operator& op, placement::Layout layout) const {
    if (op.kind != model::OpKind::add && op.kind != model::OpKind::gradient_sum) return layout;
    for (std::size_t axis = 0; axis < layout.size(); ++axis) {
      bool partial = layout[axis].dim == placement::AxisRole::replica;
      for (const model::TensorId input : op.inputs) {
        const auto held = held_.find(input);
        partial = partial && held != held_.end();
        for (std::size_t i = 0; partial && i < held->second.size(); ++i)
          partial = held->second[i].layout[axis].dim == placement::AxisRole::partial;
      }
      if (partial) layout[axis] = {placement::AxisRole::partial};
    }
    return layout;
  }

  /// From what is cheapest to convert, by the layouts on the way, which are there from then on. An
  /// all-reduce takes the place of what it reduces.
  void obtain(model::TensorId tensor, const placement::Layout& wanted) {
    std::vector<Held>& held = held_.at(tensor);
    if (std::ranges::find(held, wanted, &Held::layout) != held.end()) return;
    const std::vector<std::int64_t>& shape = graph_.tensors[tensor].shape;
    const std::vector<int> sizes = grid_.sizes();
    const auto steps = [&](const Held& from) {
      return placement::convert(from.layout, wanted, shape, sizes);
    };
    const auto cost = [&](const Held& from) {
      return placement::conversion_cost(steps(from), from.layout, shape, sizes);
    };
    Held now = *std::ranges::min_element(held, {}, cost);
    const auto hops = static_cast<double>(steps(now).size());
    bytes_ += (cost(now) - hops) * model::size_of(graph_.tensors[tensor].type).value;
    for (const placement::Conversion& step : steps(now)) {
      now.layout = placement::after(now.layout, step);
      const bool in_place =
          step.communicates() && step.collective() == cost::CollectiveKind::all_reduce;
      if (in_place) std::erase_if(held, [&](const Held& one) { return one.buffer == now.buffer; });
      if (step.communicates() && !in_place) now.buffer = new_buffer(tensor, now.layout);
      held.push_back(now);
    }
  }

  const model::Graph& graph_;
  const strategies::Plan& plan_;
  const placement::Grid& grid_;
  std::map<model::TensorId, std::vector<Held>> held_;
  std::vector<Bytes> buffers_;
  double bytes_ = 0;
};

/// A tensor on its way between grids that are neither equal nor apart and alike.
struct Crossed {
  model::TensorId tensor = -1;
  std::vector<lowering::Piece> leaves;
  std::vector<lowering::Piece> arrives;
};

/// By stage, what each of its devices communicates in one iteration of a plan that neither splits
/// backward cells nor computes again, and what crosses in every micro-batch.
class PlanVolume {
 public:
  explicit PlanVolume(const RandomPlan& random)
      : random_(random),
        facts_(lowering::segment_facts(*random.graph)),
        volumes_(random.stages.size()) {
    for (std::size_t s = 0; s < random.stages.size(); ++s) {
      grids_.push_back({random.stages[s].first_device, random.stages[s].axes, {}});
      std::ranges::sort(grids_.back().axes, std::greater<>(), &placement::Axis::stride);
      stage_of_.insert(stage_of_.end(), random.plan->stages[s].size(), static_cast<int>(s));
    }
    const auto segments = static_cast<int>(facts_.size());
    kept_.resize(segments);
    for (int segment = 0; segment < segments; ++segment) forward(segment);
    for (int segment = segments - 1; segment >= 0; --segment) backward(segment);
  }

  /// Of a device, all its stages together.
  [[nodiscard]] Volumes on(int device) const {
    Volumes sum;
    for (std::size_t s = 0; s < volumes_.size(); ++s) {
      if (random_.stages[s].has(device)) sum += volumes_[s];
    }
    return sum;
  }
  [[nodiscard]] const std::vector<Crossed>& crossed() const { return crossed_; }

 private:
  using Layouts = std::map<model::TensorId, placement::Layout>;

  Volumes& here(int segment) { return volumes_[stage_of_[segment]]; }
  [[nodiscard]] const placement::Grid& grid(int segment) const {
    return grids_[stage_of_[segment]];
  }

  /// As the first of the operators that reads a tensor reads it.
  [[nodiscard]] placement::Layout read_first(int segment, model::TensorId tensor,
                                             const std::vector<model::OpId>& ops) const {
    for (const model::OpId id : ops) {
      const model::Operator& op = random_.graph->operators[id];
      const auto found = std::ranges::find(op.inputs, tensor);
      if (found == op.inputs.end()) continue;
      return lowering::input_layout(op, static_cast<std::size_t>(found - op.inputs.begin()),
                                    lowering::split_along(*random_.plan, grid(segment), id));
    }
    return placement::Layout(grid(segment).axes.size(), {placement::AxisRole::replica});
  }

  [[nodiscard]] std::vector<lowering::Piece> pieces(int segment, model::TensorId tensor,
                                                    const placement::Layout& layout) const {
    std::vector<lowering::Piece> result;
    for (int i = 0; i < grid(segment).count(); ++i) {
      const std::vector<int> at = grid(segment).coordinates(i);
      result.push_back({grid(segment).device(at),
                        placement::mask_at(layout, random_.graph->tensors[tensor].shape,
                                           grid(segment).sizes(), at)});
    }
    return result;
  }

  /// `readers`: of the segment that it goes to.
  void leave(PassVolume& pass, model::TensorId tensor, int segment, int other,
             const std::vector<model::OpId>& readers) {
    const placement::Layout& border = borders_[tensor] = pass.leave(tensor);
    const RandomStage& from = random_.stages[stage_of_[segment]];
    const RandomStage& to = random_.stages[stage_of_[other]];
    const bool alike = grid(segment).axes == grid(other).axes;
    arrivals_[tensor] = alike ? border : read_first(other, tensor, readers);
    if (alike && from.first_device == to.first_device) return;
    if (alike && (from.end() <= to.first_device || to.end() <= from.first_device)) {
      here(segment).sent +=
          placement::local_bytes(random_.graph->tensors[tensor], border, grid(segment)).value *
          random_.plan->micro_batches;
      return;
    }
    crossed_.push_back(
        {tensor, pieces(segment, tensor, border), pieces(other, tensor, arrivals_.at(tensor))});
  }

  void forward(int segment) {
    const lowering::SegmentFacts& facts = facts_[segment];
    PassVolume pass(random_, grid(segment));
    for (const model::TensorId tensor : facts.activations_in)
      pass.import(tensor, arrivals_.at(tensor));
    pass.run(random_.graph->segments[segment].forward);
    for (const model::TensorId tensor : facts.kept) {
      if (pass.has(tensor))
        kept_[segment][tensor] = pass.smallest(tensor, random_.graph->segments[segment].backward);
    }
    for (const model::TensorId tensor : facts.activations_out) {
      leave(pass, tensor, segment, segment + 1, random_.graph->segments[segment + 1].forward);
      if (kept_[segment].contains(tensor)) kept_[segment][tensor] = borders_[tensor];
    }
    for (const model::TensorId tensor : facts.activations_in) {
      if (kept_[segment].contains(tensor)) kept_[segment][tensor] = arrivals_[tensor];
    }
    here(segment).within += pass.bytes() * random_.plan->micro_batches;
  }

  void backward(int segment) {
    const lowering::SegmentFacts& facts = facts_[segment];
    PassVolume pass(random_, grid(segment));
    for (const auto& [tensor, layout] : kept_[segment]) pass.import(tensor, layout);
    for (const model::TensorId tensor : facts.gradients_in)
      pass.import(tensor, arrivals_.at(tensor));
    pass.run(random_.graph->segments[segment].backward);
    for (const model::TensorId tensor : facts.gradients_out)
      leave(pass, tensor, segment, segment - 1, random_.graph->segments[segment - 1].backward);
    here(segment).within += pass.bytes() * random_.plan->micro_batches;
    for (const model::OpId id : random_.graph->segments[segment].backward) {
      const model::Operator& op = random_.graph->operators[id];
      if (op.pass == model::Pass::weight_gradient)
        here(segment).gradients += reduction(op, id, grid(segment));
    }
  }

  /// 2(n-1)/n of the bytes, over all devices that have a part of the sum.
  double reduction(const model::Operator& op, model::OpId id, const placement::Grid& on) {
    const std::vector<lowering::SplitAlong> split = lowering::split_along(*random_.plan, on, id);
    double n = 1;
    double bytes = model::bytes(random_.graph->tensors[op.outputs[0]]).value;
    for (std::size_t axis = 0; axis < split.size(); ++axis) {
      const double size = on.axes[axis].size;
      if (model::is_reduction(*op.annotation, split[axis].dim)) n *= size;
      if (model::dimension_of(op.annotation->outputs[0], split[axis].dim) >= 0) bytes /= size;
    }
    return 2 * (n - 1) / n * bytes;
  }

  const RandomPlan& random_;
  std::vector<lowering::SegmentFacts> facts_;
  std::vector<placement::Grid> grids_;  ///< by stage
  std::vector<int> stage_of_;           ///< by segment
  Layouts borders_;                     ///< as tensors leave a segment
  Layouts arrivals_;                    ///< as the next one begins with them
  std::vector<Layouts> kept_;
  std::vector<Volumes> volumes_;  ///< by stage
  std::vector<Crossed> crossed_;
};

}  // namespace stratagem::sim

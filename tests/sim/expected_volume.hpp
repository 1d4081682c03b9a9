// What a plan must communicate: a second, naive walk over the operators, in bytes that every device
// sends and receives.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "strategies/lower/grid.hpp"
#include "strategies/lower/segment.hpp"
#include "tests/sim/random_plan.hpp"

namespace stratagem::sim {

struct Volumes {
  double within = 0;     ///< conversions of layouts
  double gradients = 0;  ///< reductions of weight gradients
  double sent = 0;       ///< to other stages
};

/// One pass of one segment.
class PassVolume {
 public:
  PassVolume(const RandomPlan& random, const strategies::Grid& grid)
      : graph_(*random.graph), plan_(*random.plan), grid_(grid) {}

  void import(model::TensorId tensor, const strategies::Layout& layout) {
    held_[tensor] = {{layout, buffers_++}};
  }

  void run(const std::vector<model::OpId>& ops) {
    for (const model::OpId id : ops) {
      const model::Operator& op = graph_.operators[id];
      const std::vector<std::string> split = strategies::split_along(plan_, grid_, id);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const model::Role role = graph_.tensors[op.inputs[i]].role;
        if (role != model::Role::input && role != model::Role::parameter)
          obtain(op.inputs[i], summed(op, strategies::input_layout(op, i, split)));
      }
      for (std::size_t i = 0; i < op.outputs.size(); ++i)
        held_[op.outputs[i]].push_back(
            {summed(op, strategies::output_layout(op, i, split)), buffers_++});
    }
  }

  /// The layout without partial values in which a tensor leaves.
  strategies::Layout leave(model::TensorId tensor) {
    strategies::Layout full = held_.at(tensor).front().layout;
    std::ranges::replace(full, strategies::AxisRole{strategies::AxisRole::partial},
                         strategies::AxisRole{strategies::AxisRole::replica});
    obtain(tensor, full);
    return full;
  }
  /// The layout of fewest bytes in a buffer of its own; among equals one that `readers` read, the
  /// latest of those.
  [[nodiscard]] const strategies::Layout& smallest(model::TensorId tensor,
                                                   const std::vector<model::OpId>& readers) const {
    const std::vector<Held>& held = held_.at(tensor);
    const auto bytes = [&](const Held& one) {
      return strategies::local_bytes(graph_.tensors[tensor], one.layout, grid_);
    };
    std::map<int, Bytes> buffers;  // a chunk is a view of the larger layout
    for (const Held& one : held) buffers[one.buffer] = std::max(buffers[one.buffer], bytes(one));
    std::optional<std::pair<std::pair<Bytes, bool>, const Held*>> best;
    for (const Held& one : held) {
      if (bytes(one) < buffers[one.buffer]) continue;
      const std::pair cost(bytes(one), !read_so(tensor, one.layout, readers));
      if (!best || cost <= best->first) best = {cost, &one};
    }
    return best->second->layout;
  }
  [[nodiscard]] bool has(model::TensorId tensor) const { return held_.contains(tensor); }
  [[nodiscard]] double bytes() const { return bytes_; }

 private:
  struct Held {
    strategies::Layout layout;
    int buffer;
  };

  bool read_so(model::TensorId tensor, const strategies::Layout& layout,
               const std::vector<model::OpId>& readers) const {
    for (const model::OpId id : readers) {
      const model::Operator& op = graph_.operators[id];
      const std::vector<std::string> split = strategies::split_along(plan_, grid_, id);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        if (op.inputs[i] == tensor && strategies::input_layout(op, i, split) == layout) return true;
      }
    }
    return false;
  }

  /// Sums of partial sums are partial sums, where the plan does not divide them.
  strategies::Layout summed(const model::Operator& op, strategies::Layout layout) const {
    if (op.kind != model::OpKind::add && op.kind != model::OpKind::gradient_sum) return layout;
    for (std::size_t axis = 0; axis < layout.size(); ++axis) {
      bool partial = layout[axis].dim == strategies::AxisRole::replica;
      for (const model::TensorId input : op.inputs) {
        const auto held = held_.find(input);
        partial = partial && held != held_.end();
        for (std::size_t i = 0; partial && i < held->second.size(); ++i)
          partial = held->second[i].layout[axis].dim == strategies::AxisRole::partial;
      }
      if (partial) layout[axis] = {strategies::AxisRole::partial};
    }
    return layout;
  }

  /// From what is cheapest to convert, by the layouts on the way, which are there from then on. An
  /// all-reduce takes the place of what it reduces.
  void obtain(model::TensorId tensor, const strategies::Layout& wanted) {
    std::vector<Held>& held = held_.at(tensor);
    if (std::ranges::find(held, wanted, &Held::layout) != held.end()) return;
    const std::vector<std::int64_t>& shape = graph_.tensors[tensor].shape;
    const std::vector<int> sizes = grid_.sizes();
    const auto steps = [&](const Held& from) {
      return strategies::convert(from.layout, wanted, shape, sizes);
    };
    const auto cost = [&](const Held& from) {
      return strategies::conversion_cost(steps(from), from.layout, shape, sizes);
    };
    Held now = *std::ranges::min_element(held, {}, cost);
    const auto hops = static_cast<double>(steps(now).size());
    bytes_ += (cost(now) - hops) * model::size_of(graph_.tensors[tensor].type).value;
    for (const strategies::Conversion& step : steps(now)) {
      now.layout = strategies::after(now.layout, step);
      const bool in_place =
          step.communicates() && step.collective() == cost::CollectiveKind::all_reduce;
      if (in_place) std::erase_if(held, [&](const Held& one) { return one.buffer == now.buffer; });
      if (step.communicates() && !in_place) now.buffer = buffers_++;
      held.push_back(now);
    }
  }

  const model::Graph& graph_;
  const strategies::Plan& plan_;
  const strategies::Grid& grid_;
  std::map<model::TensorId, std::vector<Held>> held_;
  int buffers_ = 0;
  double bytes_ = 0;
};

/// By rank, what each of its devices communicates in one iteration of a plan that neither splits
/// backward cells nor computes again.
class PlanVolume {
 public:
  explicit PlanVolume(const RandomPlan& random)
      : random_(random), facts_(strategies::segment_facts(*random.graph)) {
    grid_.axes = random.axes;
    std::ranges::sort(grid_.axes, std::greater<>(), &strategies::Axis::stride);
    for (std::size_t s = 0; s < random.plan->stages.size(); ++s) {
      rank_of_.insert(rank_of_.end(), random.plan->stages[s].size(), random.rank_of_stage[s]);
    }
    const auto segments = static_cast<int>(facts_.size());
    kept_.resize(segments);
    for (int segment = 0; segment < segments; ++segment) forward(segment);
    for (int segment = segments - 1; segment >= 0; --segment) backward(segment);
  }

  [[nodiscard]] const Volumes& of_rank(int rank) { return volumes_[rank]; }

 private:
  using Layouts = std::map<model::TensorId, strategies::Layout>;

  Volumes& here(int segment) { return volumes_[rank_of_[segment]]; }

  void leave(PassVolume& pass, model::TensorId tensor, int segment, int other) {
    borders_[tensor] = pass.leave(tensor);
    if (rank_of_[segment] == rank_of_[other]) return;
    const Bytes bytes =
        strategies::local_bytes(random_.graph->tensors[tensor], borders_[tensor], grid_);
    here(segment).sent += bytes.value * random_.plan->micro_batches;
  }

  void forward(int segment) {
    const strategies::SegmentFacts& facts = facts_[segment];
    PassVolume pass(random_, grid_);
    for (const model::TensorId tensor : facts.activations_in)
      pass.import(tensor, borders_.at(tensor));
    pass.run(random_.graph->segments[segment].forward);
    for (const model::TensorId tensor : facts.kept) {
      if (pass.has(tensor))
        kept_[segment][tensor] = pass.smallest(tensor, random_.graph->segments[segment].backward);
    }
    for (const model::TensorId tensor : facts.activations_out) {
      leave(pass, tensor, segment, segment + 1);
      if (kept_[segment].contains(tensor)) kept_[segment][tensor] = borders_[tensor];
    }
    for (const model::TensorId tensor : facts.activations_in) {
      if (kept_[segment].contains(tensor)) kept_[segment][tensor] = borders_[tensor];
    }
    here(segment).within += pass.bytes() * random_.plan->micro_batches;
  }

  void backward(int segment) {
    const strategies::SegmentFacts& facts = facts_[segment];
    PassVolume pass(random_, grid_);
    for (const auto& [tensor, layout] : kept_[segment]) pass.import(tensor, layout);
    for (const model::TensorId tensor : facts.gradients_in)
      pass.import(tensor, borders_.at(tensor));
    pass.run(random_.graph->segments[segment].backward);
    for (const model::TensorId tensor : facts.gradients_out)
      leave(pass, tensor, segment, segment - 1);
    here(segment).within += pass.bytes() * random_.plan->micro_batches;
    for (const model::OpId id : random_.graph->segments[segment].backward) {
      const model::Operator& op = random_.graph->operators[id];
      if (op.pass == model::Pass::weight_gradient) here(segment).gradients += reduction(op, id);
    }
  }

  /// 2(n-1)/n of the bytes, over all devices that have a part of the sum.
  double reduction(const model::Operator& op, model::OpId id) {
    const std::vector<std::string> split = strategies::split_along(*random_.plan, grid_, id);
    double n = 1;
    double bytes = model::bytes(random_.graph->tensors[op.outputs[0]]).value;
    for (std::size_t axis = 0; axis < split.size(); ++axis) {
      const double size = grid_.axes[axis].size;
      if (model::is_reduction(op.annotation, split[axis])) n *= size;
      if (model::dimension_of(op.annotation.outputs[0], split[axis]) >= 0) bytes /= size;
    }
    return 2 * (n - 1) / n * bytes;
  }

  const RandomPlan& random_;
  std::vector<strategies::SegmentFacts> facts_;
  strategies::Grid grid_;
  std::vector<int> rank_of_;  ///< by segment
  Layouts borders_;
  std::vector<Layouts> kept_;
  std::map<int, Volumes> volumes_;
};

}  // namespace stratagem::sim

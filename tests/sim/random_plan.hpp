// Random plans on random networks: any stages on any grids, any legal split of every operator, any
// complete order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <set>
#include <vector>

#include "lowering/lower.hpp"
#include "strategies/language/plan_text.hpp"
#include "tests/sim/random_graph.hpp"

namespace stratagem::sim {

/// The grid of a stage: axes that fill a block of devices.
struct RandomStage {
  std::vector<placement::Axis> axes;
  int first_device = 0;

  [[nodiscard]] int end() const {
    int size = 1;
    for (const placement::Axis& axis : axes) size *= axis.size;
    return first_device + size;
  }
  [[nodiscard]] bool has(int device) const { return first_device <= device && device < end(); }
  friend bool operator==(const RandomStage&, const RandomStage&) = default;
};

/// A plan, the graph that it is of, and where its stages stand.
struct RandomPlan {
  std::unique_ptr<model::Graph> graph;
  std::unique_ptr<strategies::Plan> plan;
  std::vector<RandomStage> stages;
  int devices = 0;
};

/// Strides in a random order, so that the axes fill a block.
inline void stride_randomly(std::vector<placement::Axis>& axes) {
  int stride = 1;
  for (const int i : shuffled(static_cast<int>(axes.size()))) {
    axes[i].stride = stride;
    stride *= axes[i].size;
  }
}

/// Axes of random sizes.
inline std::vector<placement::Axis> random_axes() {
  const std::vector<std::vector<int>> choices = {{1},    {2},       {3},      {4},    {1, 3},
                                                 {2, 2}, {2, 3},    {3, 2},   {4, 2}, {3, 4},
                                                 {4, 3}, {2, 2, 2}, {2, 3, 2}};
  std::vector<placement::Axis> axes;
  for (const int size : one_of(choices))
    axes.push_back({"axis" + std::to_string(axes.size()), size, 1});
  stride_randomly(axes);
  return axes;
}

/// What an operator may split into so many parts more, and "": nothing.
inline std::vector<std::string> choices_of(const model::Graph& graph, const model::Operator& op,
                                           const std::vector<std::string>& before,
                                           const std::vector<placement::Axis>& axes) {
  std::vector<std::string> result = {""};
  for (const std::string dim : {"b", "s", "n", "k"}) {
    if (!model::may_split(*op.annotation, dim)) continue;
    int parts = axes[before.size()].size;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] == dim) parts *= axes[i].size;
    }
    if (strategies::size_of_dimension(graph, op, dim) % parts == 0) result.push_back(dim);
  }
  return result;
}

/// On which grids the stages of a plan stand.
enum class Grids : std::uint8_t {
  alike,  ///< of equal axes, each on its own devices or on all of another's
  mixed   ///< of any axes, and some on a part of another's devices
};

inline Grids any_grids() { return one_of<Grids>({Grids::alike, Grids::mixed}); }

/// On the devices of another stage, behind them all, or anywhere.
inline RandomStage random_stage(const std::vector<RandomStage>& others, int devices, Grids grids) {
  if (others.empty()) return {random_axes(), 0};
  const RandomStage& other = one_of(others);
  switch (pick(0, grids == Grids::mixed ? 3 : 1)) {
    case 0:
      return other;
    case 1:
      return {other.axes, devices};
    case 2:
      return {random_axes(), devices};
    default:
      return {random_axes(), pick(0, devices)};
  }
}

/// Consecutive segments become stages; no device below the last is left out.
inline void place_stages(RandomPlan& random, Grids grids) {
  strategies::Plan& plan = *random.plan;
  const auto segments = static_cast<int>(random.graph->segments.size());
  plan.stages.assign(1, {0});
  for (int segment = 1; segment < segments; ++segment) {
    if (pick(0, 2) > 0) plan.stages.emplace_back();
    plan.stages.back().push_back(segment);
  }
  random.stages.resize(plan.stages.size());
  std::vector<RandomStage> placed;
  for (const int stage : shuffled(static_cast<int>(plan.stages.size()))) {
    placed.push_back(random_stage(placed, random.devices, grids));
    random.stages[stage] = placed.back();
    random.devices = std::max(random.devices, placed.back().end());
  }
}

/// Visits every operator with its stage.
template <typename Visit>
void each_operator(const RandomPlan& random, const Visit& visit) {
  for (std::size_t stage = 0; stage < random.stages.size(); ++stage) {
    for (const int segment : random.plan->stages[stage]) {
      for (const model::OpId op : random.graph->segments[segment].forward)
        visit(op, random.stages[stage]);
    }
  }
}

inline void split_operators(RandomPlan& random) {
  each_operator(random, [&](model::OpId op, const RandomStage& stage) {
    std::vector<std::string> dims;
    std::set<std::string> with_inner;
    for (const placement::Axis& axis : stage.axes) {
      dims.push_back(
          one_of(choices_of(*random.graph, random.graph->operators[op], dims, stage.axes)));
      const bool inner = pick(0, 2) == 0 && with_inner.insert(dims.back()).second;
      random.plan->assign(
          random.plan->trans(op, {.dim = dims.back(), .parts = axis.size, .inner = inner}), axis);
    }
    random.plan->assign(op, stage.first_device);
  });
}

/// Cells that a cell of the graph needs done before it.
inline std::vector<placement::Cell> needed_by(const placement::Cell& cell, int stages) {
  using placement::CellPass;
  const auto [s, m] = std::pair(cell.stage, cell.micro_batch);
  std::vector<placement::Cell> needed;
  if (cell.pass == CellPass::weight) needed.push_back({s, m, CellPass::backward});
  if (cell.pass == CellPass::backward) {
    needed.push_back({s, m, CellPass::forward});
    if (s + 1 < stages) needed.push_back({s + 1, m, CellPass::backward});
  }
  if (cell.pass == CellPass::forward && s > 0) needed.push_back({s - 1, m, CellPass::forward});
  return needed;
}

inline bool overlap(const RandomStage& a, const RandomStage& b) {
  return a.first_device < b.end() && b.first_device < a.end();
}

/// Messages between neighbouring stages. From one device to another those of one pass have no tags:
/// they are taken in the order in which they were sent.
class InLine {
 public:
  explicit InLine(const RandomPlan& random) : random_(random) {}

  /// May a cell take what it was sent?
  [[nodiscard]] bool first(const placement::Cell& cell) const {
    const auto its = std::ranges::find(sent_, cell, &Message::to);
    return std::none_of(sent_.begin(), its, [&](const Message& before) {
      return its != sent_.end() && before.to.pass == cell.pass &&
             overlap(stage(before.from), stage(its->from)) &&
             overlap(stage(before.to), stage(cell));
    });
  }
  void run(const placement::Cell& cell) {
    using placement::CellPass;
    std::erase_if(sent_, [&](const Message& message) { return message.to == cell; });
    placement::Cell next = cell;
    next.stage += cell.pass == CellPass::forward ? 1 : -1;
    const bool exists = next.stage >= 0 && next.stage < static_cast<int>(random_.stages.size());
    if (exists && cell.pass != CellPass::weight) sent_.push_back({cell, next});
  }

 private:
  struct Message {
    placement::Cell from;
    placement::Cell to;
  };
  [[nodiscard]] const RandomStage& stage(const placement::Cell& cell) const {
    return random_.stages[cell.stage];
  }

  const RandomPlan& random_;
  std::vector<Message> sent_;  ///< and not yet taken
};

/// Again and again any of the cells that may come next; each device follows that order.
inline void order_cells(RandomPlan& random) {
  using placement::Cell;
  strategies::Plan& plan = *random.plan;
  const auto stages = static_cast<int>(plan.stages.size());
  std::set<Cell> left;
  for (int s = 0; s < stages; ++s) {
    for (int m = 0; m < plan.micro_batches; ++m) {
      left.insert({s, m, placement::CellPass::forward});
      left.insert({s, m, placement::CellPass::backward});
      if (plan.splits_backward(s, m)) left.insert({s, m, placement::CellPass::weight});
    }
  }
  std::vector<Cell> all;
  InLine messages(random);
  while (!left.empty()) {
    std::vector<Cell> ready;
    for (const Cell& cell : left) {
      bool free = messages.first(cell);
      for (const Cell& before : needed_by(cell, stages)) free = free && !left.contains(before);
      if (free) ready.push_back(cell);
    }
    all.push_back(one_of(ready));
    left.erase(all.back());
    messages.run(all.back());
  }
  std::set<std::vector<Cell>> chains;
  for (int device = 0; device < random.devices; ++device) {
    std::vector<Cell> here;
    std::ranges::copy_if(all, std::back_inserter(here),
                         [&](const Cell& cell) { return random.stages[cell.stage].has(device); });
    if (chains.insert(here).second) plan.chain(std::move(here));
  }
}

/// What a failing case prints.
inline std::string to_text(const RandomPlan& random) {
  std::string text;
  for (std::size_t s = 0; s < random.stages.size(); ++s) {
    text += "stage " + std::to_string(s) + " from device " +
            std::to_string(random.stages[s].first_device) + "\n";
    for (const int segment : random.plan->stages[s]) {
      for (const model::OpId op : random.graph->segments[segment].forward) {
        text += "  " + random.graph->operators[op].name + ": " +
                random.graph->operators[op].annotation->text;
        const auto& placement = random.plan->placement(op);
        for (std::size_t i = 0; i < placement.axes.size(); ++i) {
          text += " | " + (placement.dims[i].empty() ? "replicas" : placement.dims[i]) + " " +
                  std::to_string(placement.axes[i].size) + " stride " +
                  std::to_string(placement.axes[i].stride) + (placement.inner[i] ? " inner" : "");
        }
        text += "\n";
      }
    }
  }
  return text + strategies::file_text(*random.plan);
}

/// What a test leaves out of its plans.
struct Without {
  bool cuts = false;  ///< split backward cells, and what is computed again
};

inline RandomPlan random_plan(Grids grids, Without without = {}) {
  RandomPlan random;
  random.graph = std::make_unique<model::Graph>(RandomGraph().build());
  random.plan = std::make_unique<strategies::Plan>(*random.graph);
  strategies::Plan& plan = *random.plan;
  place_stages(random, grids);
  split_operators(random);
  plan.micro_batches = pick(1, 4);
  plan.gradients.overlap = pick(0, 1) == 1;
  if (pick(0, 1) == 1) plan.gradients.bucket = 500_B;
  for (int s = 0; !without.cuts && s < static_cast<int>(plan.stages.size()); ++s) {
    for (int m = 0; m < plan.micro_batches; ++m) {
      if (pick(0, 3) == 0) plan.split_backward(s, m);
    }
  }
  for (int i = 0; !without.cuts && i < static_cast<int>(random.graph->segments.size()); ++i) {
    if (pick(0, 3) == 0) plan.recompute(plan.graph().segments[i].forward);
  }
  order_cells(random);
  RC_LOG(to_text(random));
  return random;
}

}  // namespace stratagem::sim

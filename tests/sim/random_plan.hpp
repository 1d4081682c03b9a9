// Random plans on random networks: any legal split of every operator, any stages, any complete order.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "strategies/lower.hpp"
#include "tests/sim/random_graph.hpp"

namespace stratagem::sim {

/// A plan, the graph that it is of, and the grid that each of its stages stands on.
struct RandomPlan {
  std::unique_ptr<model::Graph> graph;
  std::unique_ptr<strategies::Plan> plan;
  std::vector<strategies::Axis> axes;
  std::vector<int> rank_of_stage;  ///< stages of one rank stand on the same devices
  int devices = 1;
};

/// Axes of random sizes that fill a block of devices, in a random order of strides.
inline std::vector<strategies::Axis> random_axes() {
  const std::vector<std::vector<int>> choices = {
      {2}, {3}, {4}, {2, 2}, {2, 3}, {3, 2}, {4, 2}, {3, 4}, {4, 3}, {2, 2, 2}, {2, 3, 2}};
  std::vector<strategies::Axis> axes;
  for (const int size : one_of(choices))
    axes.push_back({"axis" + std::to_string(axes.size()), size, 1});
  int stride = 1;
  for (const int i : shuffled(static_cast<int>(axes.size()))) {
    axes[i].stride = stride;
    stride *= axes[i].size;
  }
  return axes;
}

/// What an operator may split into so many parts more, and "": nothing.
inline std::vector<std::string> choices_of(const model::Graph& graph, const model::Operator& op,
                                           const std::vector<std::string>& before,
                                           const std::vector<strategies::Axis>& axes) {
  std::vector<std::string> result = {""};
  for (const std::string dim : {"b", "s", "n", "k"}) {
    if (!model::may_split(op.annotation, dim)) continue;
    int parts = axes[before.size()].size;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] == dim) parts *= axes[i].size;
    }
    if (strategies::size_of_dimension(graph, op, dim) % parts == 0) result.push_back(dim);
  }
  return result;
}

inline void split_operators(RandomPlan& random) {
  for (const model::OpId op : random.plan->operators()) {
    std::vector<std::string> dims;
    for (const strategies::Axis& axis : random.axes) {
      dims.push_back(
          one_of(choices_of(*random.graph, random.graph->operators[op], dims, random.axes)));
      random.plan->assign(random.plan->trans(op, {dims.back(), axis.size}), axis);
    }
  }
}

/// Consecutive segments become stages, and stages stand on ranks, each of which has one.
inline void place_stages(RandomPlan& random) {
  strategies::Plan& plan = *random.plan;
  const auto segments = static_cast<int>(random.graph->segments.size());
  plan.stages.assign(1, {0});
  for (int segment = 1; segment < segments; ++segment) {
    if (pick(0, 2) > 0) plan.stages.emplace_back();
    plan.stages.back().push_back(segment);
  }
  const auto stages = static_cast<int>(plan.stages.size());
  const int ranks = pick(1, stages);
  const std::vector<int> names = shuffled(stages);
  int block = 1;
  for (const strategies::Axis& axis : random.axes) block *= axis.size;
  random.devices = ranks * block;
  for (int stage = 0; stage < stages; ++stage) {
    random.rank_of_stage.push_back(names[stage] < ranks ? names[stage] : pick(0, ranks - 1));
    for (const int segment : plan.stages[stage]) {
      for (const model::OpId op : random.graph->segments[segment].forward)
        plan.assign(op, random.rank_of_stage.back() * block);
    }
  }
}

/// Cells that a cell of the graph needs done before it.
inline std::vector<strategies::Cell> needed_by(const strategies::Cell& cell, int stages) {
  using strategies::CellPass;
  const auto [s, m] = std::pair(cell.stage, cell.micro_batch);
  std::vector<strategies::Cell> needed;
  if (cell.pass == CellPass::weight) needed.push_back({s, m, CellPass::backward});
  if (cell.pass == CellPass::backward) {
    needed.push_back({s, m, CellPass::forward});
    if (s + 1 < stages) needed.push_back({s + 1, m, CellPass::backward});
  }
  if (cell.pass == CellPass::forward && s > 0) needed.push_back({s - 1, m, CellPass::forward});
  return needed;
}

/// Again and again any of the cells that may come next; each rank follows that order.
inline void order_cells(RandomPlan& random) {
  using strategies::Cell;
  strategies::Plan& plan = *random.plan;
  const auto stages = static_cast<int>(plan.stages.size());
  std::set<Cell> left;
  for (int s = 0; s < stages; ++s) {
    for (int m = 0; m < plan.micro_batches; ++m) {
      left.insert({s, m, strategies::CellPass::forward});
      left.insert({s, m, strategies::CellPass::backward});
      if (plan.splits_backward(s, m)) left.insert({s, m, strategies::CellPass::weight});
    }
  }
  std::vector<std::vector<Cell>> of_rank(stages);
  while (!left.empty()) {
    std::vector<Cell> ready;
    for (const Cell& cell : left) {
      bool free = true;
      for (const Cell& before : needed_by(cell, stages)) free = free && !left.contains(before);
      if (free) ready.push_back(cell);
    }
    const Cell next = one_of(ready);
    left.erase(next);
    of_rank[random.rank_of_stage[next.stage]].push_back(next);
  }
  for (std::vector<Cell>& cells : of_rank) plan.chain(std::move(cells));
}

/// `whole`: no backward cell is split and nothing is computed again.
inline RandomPlan random_plan(bool whole = false) {
  RandomPlan random;
  random.graph = std::make_unique<model::Graph>(RandomGraph().build());
  random.plan = std::make_unique<strategies::Plan>(*random.graph);
  strategies::Plan& plan = *random.plan;
  random.axes = random_axes();
  split_operators(random);
  place_stages(random);
  plan.micro_batches = pick(1, 4);
  plan.gradients.overlap = pick(0, 1) == 1;
  if (pick(0, 1) == 1) plan.gradients.bucket = 500_B;
  for (int s = 0; !whole && s < static_cast<int>(plan.stages.size()); ++s) {
    for (int m = 0; m < plan.micro_batches; ++m) {
      if (pick(0, 3) == 0) plan.split_backward(s, m);
    }
  }
  for (int i = 0; !whole && i < static_cast<int>(random.graph->segments.size()); ++i) {
    if (pick(0, 3) == 0) plan.recompute(plan.graph().segments[i].forward);
  }
  order_cells(random);
  return random;
}

}  // namespace stratagem::sim

// Sorts the cells of every device class topologically; for plans without a flush, finds the round
// that repeats.
#include "lowering/cells/cells.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "lowering/cells/cell_graph.hpp"

namespace stratagem::lowering {

using placement::Cell;
using strategies::Plan;

namespace {

/// Cells of every device class in a sorted order, micro-batches counted through all iterations.
std::vector<std::vector<ScheduledCell>> cells_of_classes(const CellGraph& graph,
                                                         const Stages& stages) {
  const std::vector<int> sorted = graph.sorted();
  std::vector<int> position(graph.count(), -1);
  for (std::size_t i = 0; i < sorted.size(); ++i) position[sorted[i]] = static_cast<int>(i);
  std::vector<std::vector<int>> classes_of(stages.replicas().size());
  for (std::size_t h = 0; h < stages.device_classes().size(); ++h) {
    for (const int replica : stages.device_classes()[h].replicas)
      classes_of[replica].push_back(static_cast<int>(h));
  }
  std::vector<std::vector<ScheduledCell>> result(stages.device_classes().size());
  std::vector<int> last(stages.device_classes().size(), -1);
  for (const int node : sorted) {
    const std::vector<Cell> cells = graph.cells(node);
    for (const int device_class : classes_of[graph.replica(cells.front())]) {
      const int before = std::exchange(last[device_class], node);
      if (before >= 0 && !graph.leads_to(before, node, position)) {
        throw InputError("", "",
                         "an op-order between " + graph.describe(graph.cell(before)) + " and " +
                             graph.describe(cells.front()),
                         "neither");
      }
      for (const Cell& cell : cells)
        result[device_class].push_back(
            {.cell = cell, .with_next = &cell != &cells.back(), .place = position[node]});
    }
  }
  return result;
}

/// The window of one iteration between the first cells of two late iterations, as offsets to it.
std::vector<ScheduledCell> round_of(const std::vector<ScheduledCell>& unrolled, int micro_batches,
                                    int iterations) {
  const auto first_of = [&](int iteration) {
    Cell anchor = unrolled.front().cell;
    anchor.micro_batch += iteration * micro_batches;
    return std::ranges::find(unrolled, anchor, &ScheduledCell::cell) - unrolled.begin();
  };
  const int now = iterations - 2;
  std::vector<ScheduledCell> round;
  for (auto i = first_of(now); i < first_of(now + 1); ++i) {
    ScheduledCell one = unrolled[i];
    one.lag = now - one.cell.micro_batch / micro_batches;
    one.cell.micro_batch %= micro_batches;
    round.push_back(one);
  }
  return round;
}

/// What `iterations` iterations run if every round is `round`.
std::vector<Cell> replayed(const std::vector<ScheduledCell>& round, int micro_batches,
                           int iterations, int lag) {
  std::vector<Cell> result;
  for (int r = 0; r < iterations + lag; ++r) {
    for (const ScheduledCell& one : round) {
      if (r < one.lag || r - one.lag >= iterations) continue;
      result.push_back(one.cell);
      result.back().micro_batch += (r - one.lag) * micro_batches;
    }
  }
  return result;
}

CellOrder without_flush(const Plan& plan, const Stages& stages) {
  for (const DeviceClass& device_class : stages.device_classes()) {
    if (device_class.replicas.size() == 1) continue;
    // Its parameters would take their steps together, between cells that read different versions.
    throw InputError("", plan.said.updates, "one stage on every device of a plan without a flush",
                     std::to_string(device_class.replicas.size()) + " on device " +
                         std::to_string(device_class.devices.front()));
  }
  const int iterations = iterations_to_order(plan, stages);
  const CellGraph graph(plan, stages, iterations);
  CellOrder order;
  for (const std::vector<ScheduledCell>& unrolled : cells_of_classes(graph, stages)) {
    order.rounds.push_back(round_of(unrolled, plan.micro_batches, iterations));
    for (const ScheduledCell& one : order.rounds.back()) order.lag = std::max(order.lag, one.lag);
    std::vector<Cell> cells;
    cells.reserve(unrolled.size());
    for (const ScheduledCell& one : unrolled) cells.push_back(one.cell);
    if (replayed(order.rounds.back(), plan.micro_batches, iterations, order.lag) != cells) {
      throw InputError("", "", "orders that repeat from iteration to iteration on every device",
                       "others on that of " + graph.describe(cells.front()));
    }
  }
  return order;
}

}  // namespace

int iterations_to_order(const Plan& plan, const Stages& stages) {
  if (plan.updates.flush) return 1;
  // A device is ahead of an update by at most the cells in flight: a micro-batch per replica and
  // pass.
  return 2 * static_cast<int>(stages.replicas().size()) / plan.micro_batches + 4;
}

CellOrder ordered_cells(const Plan& plan, const Stages& stages) {
  if (!plan.updates.flush) return without_flush(plan, stages);
  return {.rounds = cells_of_classes(CellGraph(plan, stages, 1), stages), .lag = 0};
}

bool weighs(const Plan& plan, const Cell& cell) {
  const bool split = plan.splits_backward(cell.stage, cell.micro_batch);
  return cell.pass == (split ? placement::CellPass::weight : placement::CellPass::backward);
}

int last_weight_cell(const Plan& plan, int stage, int copy,
                     const std::vector<ScheduledCell>& cells) {
  int last = -1;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i].cell;
    if (cell.stage != stage || plan.copy_of(stage, cell.micro_batch) != copy) continue;
    if (!weighs(plan, cell)) continue;
    if (last < 0 || cells[last].lag <= cells[i].lag) last = static_cast<int>(i);
  }
  return last;
}

}  // namespace stratagem::lowering

// Times the cells between the ends, then inserts the cells of the ends by time.
#include "strategies/schedules/timetable/ends.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "strategies/language/expand.hpp"
#include "strategies/schedules/timetable/cell_times.hpp"

namespace stratagem::strategies {

using placement::Cell;
using placement::CellPass;

namespace {

/// A cell with its place in the one order of time: what an end does at an instant comes before what
/// begins then.
struct Placed {
  int when = 0;
  int rank_of_kind = 0;
  Cell cell;
};

enum Kind { gradient_of_embedding, head_forward, head_backward, embedding_forward, others };

/// The cells of each rank in the order of time.
std::vector<std::vector<Cell>> in_order(std::vector<std::vector<Placed>> ranks) {
  std::vector<std::vector<Cell>> result;
  for (std::vector<Placed>& rank : ranks) {
    std::ranges::stable_sort(rank, {}, [](const Placed& one) {
      return std::tuple(one.when, one.rank_of_kind, one.cell.micro_batch);
    });
    result.emplace_back();
    for (const Placed& one : rank) result.back().push_back(one.cell);
  }
  return result;
}

}  // namespace

Timetable with_ends(const Timetable& timetable, Placement placement, const Pipeline& pipeline,
                    const Ends& ends) {
  const int stages = pipeline.stages(placement);
  const int shift = ends.embedding ? 1 : 0;
  const auto times = cell_times(stages, timetable, pipeline.costs);
  std::vector<std::vector<Placed>> ranks(timetable.ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (Cell cell : timetable.ranks[rank]) {
      const int when = times.at(cell).begin;
      cell.stage += shift;
      ranks[rank].push_back({when, others, cell});
    }
  }
  const auto put = [&](const std::vector<int>& where, int when, Kind kind, const Cell& cell) {
    for (const int rank : where) ranks[rank].push_back({when, kind, cell});
  };
  for (int m = 0; m < pipeline.micro_batches; ++m) {
    const Span first = times.at({0, m, CellPass::forward});
    const Span last = times.at({stages - 1, m, CellPass::forward});
    const Span returned = times.at({0, m, CellPass::backward});
    if (ends.embedding) {
      put(*ends.embedding, first.begin, embedding_forward, {0, m, CellPass::forward});
      put(*ends.embedding, returned.end, gradient_of_embedding, {0, m, CellPass::backward});
    }
    if (ends.head) {
      const int stage = stages + shift;
      put(*ends.head, last.end, head_forward, {stage, m, CellPass::forward});
      put(*ends.head, last.end, head_backward, {stage, m, CellPass::backward});
    }
  }
  Timetable result{.ranks = in_order(std::move(ranks)), .together = {}};
  for (auto [a, b] : timetable.together) {
    a.stage += shift;
    b.stage += shift;
    result.together.emplace_back(a, b);
  }
  return result;
}

Timetable timetable_of(const std::vector<OrderRule>& rules, Placement placement,
                       const Pipeline& pipeline) {
  const int stages = pipeline.stages(placement);
  std::vector<Cell> cells;
  for (int s = 0; s < stages; ++s) {
    for (int m = 0; m < pipeline.micro_batches; ++m) {
      cells.push_back({s, m, CellPass::forward});
      cells.push_back({s, m, CellPass::backward});
    }
  }
  std::vector<placement::Order> orders;
  for (const OrderRule& rule : rules) {
    const std::vector<placement::Order> more =
        expand(rule, {.stages = stages, .micro_batches = pipeline.micro_batches});
    orders.insert(orders.end(), more.begin(), more.end());
  }
  const auto times = cell_times(stages, cells, orders, pipeline.costs);
  std::ranges::stable_sort(cells, {}, [&](const Cell& cell) { return times.at(cell).begin; });
  Timetable result;
  result.ranks.resize(pipeline.ranks);
  for (const Cell& cell : cells)
    result.ranks[rank_of(placement, pipeline.ranks, cell.stage, 0)].push_back(cell);
  return result;
}

}  // namespace stratagem::strategies

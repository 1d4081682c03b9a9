// Longest paths over data and orders.
#include "strategies/schedules/timetable/cell_times.hpp"

#include <algorithm>
#include <optional>
#include <queue>
#include <set>

#include "base/input_error.hpp"

namespace stratagem::strategies {

using placement::Cell;
using placement::CellPass;
using placement::Order;

namespace {

/// The cell whose result a cell waits for; a stage's own forward cell precedes its backward cell
/// anyway.
std::optional<Cell> source(const Cell& cell, int stages) {
  Cell before = cell;
  switch (cell.pass) {
    case CellPass::forward:
      --before.stage;
      return cell.stage > 0 ? std::optional(before) : std::nullopt;
    case CellPass::backward:
      if (cell.stage + 1 < stages) {
        ++before.stage;
      } else {
        before.pass = CellPass::forward;
      }
      return before;
    case CellPass::weight:
      before.pass = CellPass::backward;
      return before;
  }
  throw BrokenPromise("a cell has one of three passes");
}

int duration(const Cell& cell, const std::set<Cell>& all, const CellCosts& costs) {
  if (cell.pass == CellPass::forward) return costs.forward;
  if (cell.pass == CellPass::weight) return costs.weight;
  Cell weight = cell;
  weight.pass = CellPass::weight;
  return all.contains(weight) ? costs.input : costs.input + costs.weight;
}

}  // namespace

std::map<Cell, Span> cell_times(int stages, const std::vector<Cell>& cells,
                                const std::vector<Order>& orders, const CellCosts& costs) {
  const std::set<Cell> all(cells.begin(), cells.end());
  std::map<Cell, std::vector<Cell>> after;
  std::map<Cell, int> missing;
  const auto add = [&](const Cell& before, const Cell& cell) {
    after[before].push_back(cell);
    ++missing[cell];
  };
  for (const Cell& cell : cells) {
    if (const auto before = source(cell, stages)) add(*before, cell);
  }
  for (const Order& order : orders) add(order.before, order.after);
  std::map<Cell, Span> times;
  std::queue<Cell> ready;
  for (const Cell& cell : cells) {
    if (missing[cell] == 0) ready.push(cell);
  }
  for (std::size_t done = 0; done < all.size(); ++done) {
    if (ready.empty()) throw InputError("", "", "op-orders without a cycle", "one");
    const Cell cell = ready.front();
    ready.pop();
    Span& span = times[cell];
    span.end = span.begin + duration(cell, all, costs);
    for (const Cell& next : after[cell]) {
      times[next].begin = std::max(times[next].begin, span.end);
      if (--missing[next] == 0) ready.push(next);
    }
  }
  return times;
}

std::map<Cell, Span> cell_times(int stages, const Timetable& timetable, const CellCosts& costs) {
  std::vector<Cell> cells;
  std::vector<Order> orders;
  for (const std::vector<Cell>& rank : timetable.ranks) {
    cells.insert(cells.end(), rank.begin(), rank.end());
    for (std::size_t i = 0; i + 1 < rank.size(); ++i) orders.push_back({rank[i], rank[i + 1]});
  }
  return cell_times(stages, cells, orders, costs);
}

}  // namespace stratagem::strategies

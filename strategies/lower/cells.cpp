// Topological sort of cells, with a cycle to show where there is none.
#include "strategies/lower/cells.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::strategies {
namespace {

class CellGraph {
 public:
  explicit CellGraph(const Plan& plan)
      : stages_(static_cast<int>(plan.stages.size())),
        micro_batches_(plan.micro_batches),
        after_(count()) {
    for (int m = 0; m < micro_batches_; ++m) {
      for (int s = 0; s < stages_; ++s) {
        if (s > 0) add({s - 1, m, CellPass::forward}, {s, m, CellPass::forward});
        if (s > 0) add({s, m, CellPass::backward}, {s - 1, m, CellPass::backward});
        add({s, m, CellPass::forward}, {s, m, CellPass::backward});
      }
    }
    for (const Order& order : plan.orders()) add(order.before, order.after);
  }

  /// All cells, each after what comes before it; throws if that is impossible.
  [[nodiscard]] std::vector<int> sorted() const {
    std::vector<int> missing(after_.size(), 0);
    for (const std::vector<int>& targets : after_) {
      for (const int target : targets) ++missing[target];
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int node = 0; node < count(); ++node) {
      if (missing[node] == 0) ready.push(node);
    }
    std::vector<int> result;
    while (!ready.empty()) {
      result.push_back(ready.top());
      ready.pop();
      for (const int target : after_[result.back()]) {
        if (--missing[target] == 0) ready.push(target);
      }
    }
    if (static_cast<int>(result.size()) < count())
      throw InputError("", "/strategy", "op-orders without a cycle", cycle(missing));
    return result;
  }

  /// Is there a path from one cell to another? `position` is each cell's place in sorted order.
  [[nodiscard]] bool leads_to(int from, int to, const std::vector<int>& position) const {
    std::vector<int> open = {from};
    std::vector<bool> seen(after_.size(), false);
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      if (node == to) return true;
      if (seen[node] || position[node] > position[to]) continue;
      seen[node] = true;
      open.insert(open.end(), after_[node].begin(), after_[node].end());
    }
    return false;
  }

  [[nodiscard]] int count() const { return 2 * stages_ * micro_batches_; }
  [[nodiscard]] Cell cell(int node) const {
    const int half = stages_ * micro_batches_;
    const CellPass pass = node < half ? CellPass::forward : CellPass::backward;
    return {(node % half) % stages_, (node % half) / stages_, pass};
  }

 private:
  [[nodiscard]] int node(const Cell& cell) const {
    const bool exists = cell.stage >= 0 && cell.stage < stages_ && cell.micro_batch >= 0 &&
                        cell.micro_batch < micro_batches_;
    if (!exists)
      throw InputError("", "/strategy", "op-orders between cells of the plan", to_text(cell));
    const int half = stages_ * micro_batches_;
    return (cell.pass == CellPass::forward ? 0 : half) + cell.micro_batch * stages_ + cell.stage;
  }

  void add(const Cell& before, const Cell& after) { after_[node(before)].push_back(node(after)); }

  /// Among the cells that could not be sorted, walk backwards until one comes again.
  [[nodiscard]] std::string cycle(const std::vector<int>& missing) const {
    std::vector<int> before(after_.size(), -1);
    for (int node = 0; node < count(); ++node) {
      for (const int target : after_[node]) {
        if (missing[node] > 0 && missing[target] > 0) before[target] = node;
      }
    }
    int node = static_cast<int>(std::ranges::find_if(missing, [](int n) { return n > 0; }) -
                                missing.begin());
    for (int step = 0; step < count(); ++step) node = before[node];  // now surely on the cycle
    std::string text = to_text(cell(node));
    for (int at = before[node]; at != node; at = before[at])
      text.insert(0, to_text(cell(at)) + " before ");
    return to_text(cell(node)) + " before " + text;
  }

  int stages_;
  int micro_batches_;
  std::vector<std::vector<int>> after_;
};

}  // namespace

std::vector<std::vector<Cell>> ordered_cells(const Plan& plan) {
  const CellGraph graph(plan);
  const std::vector<int> sorted = graph.sorted();
  std::vector<int> position(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) position[sorted[i]] = static_cast<int>(i);
  std::vector<std::vector<Cell>> stages(plan.stages.size());
  std::vector<int> last(plan.stages.size(), -1);
  for (const int node : sorted) {
    const Cell cell = graph.cell(node);
    const int before = std::exchange(last[cell.stage], node);
    if (before >= 0 && !graph.leads_to(before, node, position)) {
      throw InputError(
          "", "/strategy",
          "an op-order between " + to_text(graph.cell(before)) + " and " + to_text(cell),
          "neither");
    }
    stages[cell.stage].push_back(cell);
  }
  return stages;
}

}  // namespace stratagem::strategies

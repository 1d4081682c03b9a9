// Data dependencies and op-orders as edges between cells; finds a cycle to print if they contradict
// each other.
#include "lowering/cells/cell_graph.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/input_error.hpp"
#include "strategies/language/expand.hpp"

namespace stratagem::lowering {

using placement::Cell;
using placement::CellPass;

CellGraph::CellGraph(const strategies::Plan& plan, const Stages& stages, int iterations)
    : plan_(plan),
      stages_(stages),
      stage_count_(stages.count()),
      micro_batches_(plan.micro_batches * iterations),
      slices_(plan.slices()),
      repeats_(plan.graph().forward_repeats) {
  const int nodes = stage_count_ * micro_batches_ * slices_ * (repeats_ + 2);
  after_.resize(nodes);
  merged_into_.resize(nodes);
  for (int i = 0; i < nodes; ++i) merged_into_[i] = i;
  partner_.assign(nodes, -1);
  merge_pairs();
  for (int m = 0; m < micro_batches_; ++m) add_data(m);
  add_orders();
}

bool CellGraph::splits(int stage, int micro_batch) const {
  return plan_.splits_backward(stage, micro_batch % plan_.micro_batches);
}

int CellGraph::node(const Cell& cell) const {
  const int kind = cell.pass == CellPass::forward    ? cell.repeat
                   : cell.pass == CellPass::backward ? repeats_
                                                     : repeats_ + 1;
  const int at = (cell.micro_batch * stage_count_ + cell.stage) * slices_ + cell.slice;
  return kind * (stage_count_ * micro_batches_ * slices_) + at;
}

Cell CellGraph::cell(int node) const {
  const int of_kind = stage_count_ * micro_batches_ * slices_;
  const int kind = node / of_kind;
  const int at = node % of_kind;
  return {.stage = at / slices_ % stage_count_,
          .micro_batch = at / slices_ / stage_count_,
          .pass = kind < repeats_    ? CellPass::forward
                  : kind == repeats_ ? CellPass::backward
                                     : CellPass::weight,
          .slice = at % slices_,
          .repeat = kind < repeats_ ? kind : 0};
}

bool CellGraph::exists(int node) const {
  const Cell c = cell(node);
  return c.pass != CellPass::weight || splits(c.stage, c.micro_batch);
}

std::vector<Cell> CellGraph::cells(int node) const {
  if (partner_[node] < 0) return {cell(node)};
  return {cell(node), cell(partner_[node])};
}

int CellGraph::replica(const Cell& cell) const {
  return stages_.replica(cell.stage,
                         plan_.copy_of(cell.stage, cell.micro_batch % plan_.micro_batches));
}

int CellGraph::existing(const Cell& cell, const std::string& path) const {
  const auto within = [](int value, int size) { return value >= 0 && value < size; };
  const bool known = within(cell.stage, stage_count_) && within(cell.micro_batch, micro_batches_) &&
                     within(cell.slice, slices_) &&
                     within(cell.repeat, cell.pass == CellPass::forward ? repeats_ : 1) &&
                     exists(node(cell));
  if (!known) throw InputError("", path, "op-orders between cells of the plan", to_text(cell));
  return merged_into_[node(cell)];
}

void CellGraph::add(const Cell& before, const Cell& after) {
  const int a = merged_into_[node(before)];
  const int b = merged_into_[node(after)];
  after_[a].push_back(b);
}

void CellGraph::merge_pairs() {
  for (const auto& [first, second] : plan_.orders().together) {
    for (int m = 0; m < micro_batches_; m += plan_.micro_batches) {
      Cell a = first;
      Cell b = second;
      a.micro_batch += m;
      b.micro_batch += m;
      const int into = existing(a, "");
      const int merged = existing(b, "");
      if (replica(a) != replica(b) &&
          stages_.replicas()[replica(a)].grid != stages_.replicas()[replica(b)].grid) {
        throw InputError("", "", "cells that run together to be on the same devices",
                         describe(a) + " and " + describe(b));
      }
      merged_into_[merged] = into;
      partner_[into] = merged;
    }
  }
}

void CellGraph::add_data(int m) {
  for (const StageFlow& flow : stages_.flows()) add_flow(flow, m);
  const int last = repeats_ - 1;
  for (int s = 0; s < stage_count_; ++s) {
    for (int k = 0; k < slices_; ++k) {
      const Cell backward{s, m, CellPass::backward, k};
      add({s, m, CellPass::forward, k, last}, backward);
      if (splits(s, m)) add(backward, {s, m, CellPass::weight, k});
      for (int r = 0; r < last; ++r)
        add({s, m, CellPass::forward, k, r}, {s, m, CellPass::forward, k, r + 1});
    }
    add_slices(s, m);
  }
}

/// A slice's queries see the keys of the slices before it, whose gradients come from it.
void CellGraph::add_slices(int stage, int m) {
  for (int k = 0; k + 1 < slices_; ++k) {
    for (int r = 0; r < repeats_; ++r)
      add({stage, m, CellPass::forward, k, r}, {stage, m, CellPass::forward, k + 1, r});
    add({stage, m, CellPass::backward, k + 1}, {stage, m, CellPass::backward, k});
  }
}

void CellGraph::add_flow(const StageFlow& flow, int m) {
  for (int k = 0; k < slices_; ++k) {
    for (int r = 0; r < repeats_; ++r) {
      const int next = flow.recycled ? r + 1 : r;
      if (next == repeats_) continue;
      add({flow.from, m, CellPass::forward, k, r}, {flow.to, m, CellPass::forward, k, next});
    }
    if (flow.returns)
      add({flow.to, m, CellPass::backward, k}, {flow.from, m, CellPass::backward, k});
  }
}

void CellGraph::add_orders() {
  const auto order = [&](const Cell& before, const Cell& after, const std::string& path) {
    const int a = existing(before, path);
    const int b = existing(after, path);
    if (a != b) after_[a].push_back(b);
  };
  for (const placement::Order& one : plan_.orders().pairs) order(one.before, one.after, "");
  const strategies::Extent extent{.stages = stage_count_,
                                  .micro_batches = micro_batches_,
                                  .slices = slices_,
                                  .repeats = repeats_};
  for (const strategies::OrderRule& rule : plan_.orders().rules) {
    for (const placement::Order& one : expand(rule, extent)) {
      // W cells exist only where a backward cell is split.
      const auto missing = [&](const Cell& c) {
        return c.pass == CellPass::weight && !splits(c.stage, c.micro_batch);
      };
      if (!missing(one.before) && !missing(one.after)) order(one.before, one.after, rule.path);
    }
  }
  for (const std::vector<Cell>& chain : plan_.orders().chains) {
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) order(chain[i], chain[i + 1], "");
  }
}

std::vector<int> CellGraph::sorted() const {
  std::vector<int> missing(after_.size(), 0);
  for (const std::vector<int>& targets : after_) {
    for (const int target : targets) ++missing[target];
  }
  const auto counts = [&](int node) { return merged_into_[node] == node && exists(node); };
  // As if F took one step and B two, of which W is one where it is split off: what can run early
  // comes early.
  std::vector<int> begin(after_.size(), 0);
  using Ready = std::pair<int, int>;  // when a node begins, and the node
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  int expected = 0;
  for (int node = 0; node < count(); ++node) {
    if (!counts(node)) continue;
    ++expected;
    if (missing[node] == 0) ready.emplace(0, node);
  }
  std::vector<int> result;
  while (!ready.empty()) {
    const int node = ready.top().second;
    result.push_back(node);
    ready.pop();
    const Cell& of = cell(node);
    const bool whole = of.pass == CellPass::backward && !splits(of.stage, of.micro_batch);
    const int end = begin[node] + (whole ? 2 : 1);
    for (const int target : after_[node]) {
      begin[target] = std::max(begin[target], end);
      if (--missing[target] == 0) ready.emplace(begin[target], target);
    }
  }
  if (static_cast<int>(result.size()) < expected)
    throw InputError("", "", "op-orders without a cycle", cycle(missing));
  return result;
}

bool CellGraph::leads_to(int from, int to, const std::vector<int>& position) const {
  if (std::ranges::find(after_[from], to) != after_[from].end()) return true;
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

std::string CellGraph::describe(const Cell& cell) const {
  const placement::Grid& grid = stages_.replicas()[replica(cell)].grid;
  const int first = grid.first_device;
  if (!grid.listed.empty()) {
    std::string names;
    for (const int device : grid.listed) names += " " + std::to_string(device);
    return to_text(cell) + " on devices" + names;
  }
  int last = first;
  for (const placement::Axis& axis : grid.axes) last += (axis.size - 1) * axis.stride;
  return to_text(cell) +
         (last == first ? " on device " + std::to_string(first)
                        : " on devices " + std::to_string(first) + " to " + std::to_string(last));
}

/// Among the nodes that could not be sorted, walk backwards until one comes again.
std::string CellGraph::cycle(const std::vector<int>& missing) const {
  std::vector<int> before(after_.size(), -1);
  for (int node = 0; node < count(); ++node) {
    for (const int target : after_[node]) {
      if (missing[node] > 0 && missing[target] > 0) before[target] = node;
    }
  }
  int node = static_cast<int>(std::ranges::find_if(missing, [](int n) { return n > 0; }) -
                              missing.begin());
  for (int step = 0; step < count(); ++step) node = before[node];  // now surely on the cycle
  std::vector<int> round = {node};
  for (int at = before[node]; at != node; at = before[at]) round.push_back(at);
  round.push_back(node);
  constexpr std::size_t shown = 4;  // of either end of a long one
  const std::size_t left_out = round.size() > 2 * shown + 1 ? round.size() - 2 * shown : 0;
  std::string text;
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (i == shown && left_out > 0) {
      text += " before " + std::to_string(left_out) + " others";
      i += left_out;
    }
    text += (i == 0 ? "" : " before ") + describe(cell(round[round.size() - 1 - i]));
  }
  return text;
}

}  // namespace stratagem::lowering

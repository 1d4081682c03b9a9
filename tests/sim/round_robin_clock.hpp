// When the cells of 1F1B-RR end: a second clock, which knows nothing of plans, lowering or engine.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace stratagem::sim {

/// Stages in copies that take turns, without a flush, on a network that takes no time.
struct RoundRobin {
  std::vector<int> copies;
  std::vector<double> forward;  ///< of a micro-batch on one copy, by stage
  std::vector<double> backward;
  int micro_batches = 1;  ///< an iteration, each with one update
  int iterations = 1;
  bool updates_meet = true;  ///< no copy of a stage goes on before all have done the iteration
};

class RoundRobinClock {
 public:
  explicit RoundRobinClock(RoundRobin pipeline) : p_(std::move(pipeline)) {
    std::vector<Copy> all;
    for (int stage = 0; stage < static_cast<int>(p_.copies.size()); ++stage) {
      for (int copy = 0; copy < p_.copies[stage]; ++copy) all.push_back(copy_of(stage, copy));
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (Copy& copy : all) {
        while (copy.next < copy.cells.size() && play(copy)) moved = true;
      }
    }
  }

  /// When the last cell of an iteration ends; throws std::out_of_range where cells wait for ever.
  [[nodiscard]] double end_of(int iteration) const {
    double end = 0;
    for (int m = iteration * p_.micro_batches; m < (iteration + 1) * p_.micro_batches; ++m)
      end = std::max(end, ends_.at({false, 0, m}));
    return end;
  }

  /// From the end of an iteration to the end of the next, as a mean over the second third of all.
  [[nodiscard]] double period() const {
    const int third = p_.iterations / 3;
    return (end_of(2 * third) - end_of(third)) / third;
  }

 private:
  using Cell = std::tuple<bool, int, int>;  // forward?, stage, micro-batch counted through all
  struct Copy {
    int stage = 0;
    std::vector<Cell> cells;
    std::size_t next = 0;
    double free = 0;
  };

  [[nodiscard]] Copy copy_of(int stage, int copy) const {
    const int n = p_.copies[stage];
    const int here_and_later = std::accumulate(p_.copies.begin() + stage, p_.copies.end(), 0);
    const int ahead = (here_and_later - 1) / n;
    const int turns = p_.micro_batches * p_.iterations / n;
    Copy result{.stage = stage, .cells = {}};
    for (int turn = -ahead; turn < turns; ++turn) {
      if (turn + ahead < turns) result.cells.emplace_back(true, stage, (turn + ahead) * n + copy);
      if (turn >= 0) result.cells.emplace_back(false, stage, turn * n + copy);
    }
    return result;
  }

  /// Ends the next cell of a copy if all that it waits for has ended.
  bool play(Copy& copy) {
    std::vector<Cell> before;
    const auto [forward, stage, m] = copy.cells[copy.next];
    const int other = forward ? stage - 1 : stage + 1;
    if (other >= 0 && other < static_cast<int>(p_.copies.size()))
      before.emplace_back(forward, other, m);
    if (copy.next > 0 && p_.updates_meet) add_update(copy.cells[copy.next - 1], before);
    double begin = copy.free;
    for (const Cell& cell : before) {
      const auto found = ends_.find(cell);
      if (found == ends_.end()) return false;
      begin = std::max(begin, found->second);
    }
    copy.free = begin + (forward ? p_.forward : p_.backward)[stage];
    ends_[copy.cells[copy.next++]] = copy.free;
    return true;
  }

  /// After a copy's last backward cell of an iteration: those of all copies.
  void add_update(const Cell& last, std::vector<Cell>& before) const {
    const auto [forward, stage, m] = last;
    const int n = p_.copies[stage];
    const int iteration = m / p_.micro_batches;
    const int end = (iteration + 1) * p_.micro_batches;
    if (forward || m + n < end) return;
    for (int copy = 0; copy < n; ++copy) before.emplace_back(false, stage, end - n + copy);
  }

  RoundRobin p_;
  std::map<Cell, double> ends_;
};

}  // namespace stratagem::sim

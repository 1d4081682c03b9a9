// Plays a timetable cell by cell: a second, independent opinion on what schedules promise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// Durations; a backward cell that is not split takes input + weight.
struct ClockCosts {
  std::int64_t forward = 1;
  std::int64_t input = 1;
  std::int64_t weight = 1;
  std::int64_t together = 0;  ///< a pair of a forward and a backward cell
};

struct PlayedRank {
  std::int64_t first = 0;  ///< begin of the first cell
  std::int64_t last = 0;   ///< end of the last cell
  std::int64_t busy = 0;
  int peak = 0;  ///< forward cells begun whose W, or B with W in it, has not ended
};

struct Played {
  std::vector<PlayedRank> ranks;

  [[nodiscard]] std::int64_t makespan() const {
    std::int64_t last = 0;
    for (const PlayedRank& rank : ranks) last = std::max(last, rank.last);
    return last;
  }
  /// Idle time of every rank inside its own span.
  [[nodiscard]] std::vector<std::int64_t> bubbles() const {
    std::vector<std::int64_t> result;
    for (const PlayedRank& rank : ranks) result.push_back(rank.last - rank.first - rank.busy);
    return result;
  }
  [[nodiscard]] std::int64_t bubble() const {
    const auto all = bubbles();
    return *std::max_element(all.begin(), all.end());
  }
  [[nodiscard]] std::vector<int> peaks() const {
    std::vector<int> result;
    for (const PlayedRank& rank : ranks) result.push_back(rank.peak);
    return result;
  }
  [[nodiscard]] int peak() const {
    const auto all = peaks();
    return *std::max_element(all.begin(), all.end());
  }
};

/// Every rank runs its cells in order, each as early as what it needs is there:
///   F(s, m) needs F(s-1, m);  B(s, m) needs F(s, m) and B(s+1, m);  W(s, m) needs B(s, m).
/// A pair begins when both of its cells may, and both results are there at its end.
class CellClock {
 public:
  CellClock(const Timetable& timetable, const ClockCosts& costs)
      : timetable_(timetable), costs_(costs), at_(timetable.ranks.size()) {
    for (const auto& cells : timetable.ranks) {
      for (const placement::Cell& cell : cells) {
        stages_ = std::max(stages_, cell.stage + 1);
        if (cell.pass == placement::CellPass::weight) split_.emplace(cell.stage, cell.micro_batch);
      }
    }
    for (const auto& [one, other] : timetable.together) partner_[one] = other;
    played_.ranks.resize(timetable.ranks.size());
  }

  /// Nothing where ranks wait for each other for ever.
  std::optional<Played> play() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < at_.size(); ++rank)
        while (step(rank)) moved = true;
    }
    for (std::size_t rank = 0; rank < at_.size(); ++rank) {
      if (at_[rank] < timetable_.ranks[rank].size()) return std::nullopt;
      measure(rank);
    }
    return played_;
  }

 private:
  /// Runs the next cell, or pair, of a rank if what it needs has been computed.
  bool step(std::size_t rank) {
    const auto& cells = timetable_.ranks[rank];
    if (at_[rank] == cells.size()) return false;
    const std::size_t size = partner_.contains(cells[at_[rank]]) ? 2 : 1;
    std::int64_t begin = played_.ranks[rank].last;
    for (std::size_t i = 0; i < size; ++i) {
      for (const placement::Cell& needed : needs(cells[at_[rank] + i])) {
        const auto found = spans_.find(needed);
        if (found == spans_.end()) return false;
        begin = std::max(begin, found->second.second);
      }
    }
    const std::int64_t end = begin + (size == 2 ? costs_.together : duration(cells[at_[rank]]));
    for (std::size_t i = 0; i < size; ++i) spans_[cells[at_[rank] + i]] = {begin, end};
    PlayedRank& played = played_.ranks[rank];
    if (at_[rank] == 0) played.first = begin;
    played.last = end;
    played.busy += end - begin;
    at_[rank] += size;
    return true;
  }

  [[nodiscard]] std::vector<placement::Cell> needs(const placement::Cell& cell) const {
    const auto& [stage, micro_batch, pass, slice, repeat] = cell;
    if (pass == placement::CellPass::weight)
      return {{stage, micro_batch, placement::CellPass::backward}};
    std::vector<placement::Cell> result;
    if (pass == placement::CellPass::forward) {
      if (stage > 0) result.push_back({stage - 1, micro_batch, placement::CellPass::forward});
    } else {
      result.push_back({stage, micro_batch, placement::CellPass::forward});
      if (stage + 1 < stages_)
        result.push_back({stage + 1, micro_batch, placement::CellPass::backward});
    }
    return result;
  }

  [[nodiscard]] bool releases(const placement::Cell& cell) const {
    if (cell.pass == placement::CellPass::backward)
      return !split_.contains({cell.stage, cell.micro_batch});
    return cell.pass == placement::CellPass::weight;
  }

  [[nodiscard]] std::int64_t duration(const placement::Cell& cell) const {
    if (cell.pass == placement::CellPass::forward) return costs_.forward;
    if (cell.pass == placement::CellPass::weight) return costs_.weight;
    return costs_.input + (releases(cell) ? costs_.weight : 0);
  }

  /// At the same instant what ends lets go before what begins takes.
  void measure(std::size_t rank) {
    std::vector<std::pair<std::int64_t, int>> changes;
    for (const placement::Cell& cell : timetable_.ranks[rank]) {
      if (cell.pass == placement::CellPass::forward) changes.emplace_back(spans_[cell].first, 1);
      if (releases(cell)) changes.emplace_back(spans_[cell].second, -1);
    }
    std::sort(changes.begin(), changes.end());
    int held = 0;
    for (const auto& [instant, change] : changes) {
      held += change;
      played_.ranks[rank].peak = std::max(played_.ranks[rank].peak, held);
    }
  }

  const Timetable& timetable_;
  ClockCosts costs_;
  int stages_ = 0;
  std::vector<std::size_t> at_;
  std::set<std::pair<int, int>> split_;                 ///< (stage, micro-batch) with a W cell
  std::map<placement::Cell, placement::Cell> partner_;  ///< of the first cell of a pair
  std::map<placement::Cell, std::pair<std::int64_t, std::int64_t>> spans_;
  Played played_;
};

inline std::optional<Played> play(const Timetable& timetable, const ClockCosts& costs) {
  return CellClock(timetable, costs).play();
}

}  // namespace stratagem::strategies

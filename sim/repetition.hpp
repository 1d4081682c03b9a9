// Finds whether the simulation of a shorter program repeats: its state at a turn of a loop is that
// of an earlier turn, later by a period.
#pragma once

#include <optional>
#include <vector>

#include "program/shorter.hpp"
#include "sim/played_actor.hpp"
#include "sim/relative_state.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// A simulation between two events.
struct Snapshot {
  RelativeState state;
  std::vector<PlayedActor::Place> places;  ///< by actor
};

/// Looks at the turns of one actor, whose long loop has the fewest. Two snapshots of one round with
/// one state are a repetition if all actors are in their long loops, and if the turns that a
/// shorter program lacks are as many periods for all of them: the program that lacks none does the
/// same once in each of these periods.
class Repetition {
 public:
  Repetition(const program::Shorter& shorter, const Folding& folding,
             const std::vector<PlayedActor>& actors);

  /// Has that actor come to another turn, of a round in which no repetition is known?
  bool came_to_turn(const std::vector<PlayedActor>& actors);
  void look(Snapshot now, const std::vector<PlayedActor>& actors);
  /// Does the repetition of this round follow, if the round goes on as the one before did from
  /// `when` on? Expects that one is known of the round before.
  [[nodiscard]] bool goes_on_from(Instant when) const {
    return rounds() > round_ || found_.back().from >= when;
  }
  /// Copies the latest repetition, `later` each time, until there are as many as rounds.
  void repeat(int rounds, Ticks later);
  /// Has a round gone by without a repetition?
  [[nodiscard]] bool missed() const { return round_ > rounds(); }
  /// In how many rounds one is known.
  [[nodiscard]] int rounds() const { return static_cast<int>(found_.size()); }
  [[nodiscard]] std::vector<LeftOut> take() { return std::move(found_); }

 private:
  static constexpr std::size_t remembered = 8;  ///< a period may be of several turns

  [[nodiscard]] int periods_between(const Snapshot& before, const Snapshot& now,
                                    const std::vector<PlayedActor>& actors) const;

  std::vector<program::Shorter::LongLoop> long_loops_;  ///< by actor
  int actor_ = 0;
  int queue_ = 0;
  int first_ = 0;  ///< tasks of the queue before the loop
  int width_ = 0;  ///< and in one of its turns
  int end_ = 0;
  int round_ = -1;
  int next_ = 0;  ///< tasks of the queue before the next turn
  std::vector<Snapshot> snapshots_;
  std::vector<LeftOut> found_;  ///< by round
};

}  // namespace stratagem::sim

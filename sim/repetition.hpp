// Finds when a simulation repeats: its state at a turn of a loop is that of an earlier turn, later by
// a period.
#pragma once

#include <optional>
#include <vector>

#include "sim/played_actor.hpp"
#include "sim/relative_state.hpp"

namespace stratagem::sim {

/// A simulation between two events, while all actors are in loops of their sequences.
struct Snapshot {
  RelativeState state;
  std::vector<PlayedActor::Place> places;  ///< by actor
  std::vector<std::size_t> collectives;    ///< k of each open one
};

/// Two snapshots with one state, and how often what lies between them is still to come before a loop
/// ends.
struct Repeated {
  Snapshot before;
  Snapshot now;
  int periods = 0;
};

/// Looks at the turns of one actor, whose loop has the fewest.
class Repetition {
 public:
  explicit Repetition(const std::vector<PlayedActor>& actors);

  /// Has that actor come to another turn since this was asked last?
  bool came_to_turn(const std::vector<PlayedActor>& actors);
  /// What repeats, if anything does; else remembers the snapshot.
  std::optional<Repeated> find(Snapshot now, const std::vector<PlayedActor>& actors);

 private:
  static constexpr std::size_t remembered = 8;  ///< a period may be of several turns

  int actor_ = -1;  ///< -1: some actor has no loop
  int queue_ = 0;
  int first_ = 0;  ///< tasks of the queue before the loop
  int width_ = 0;  ///< and in one of its turns
  int end_ = 0;
  int round_ = -1;
  int next_ = 0;  ///< tasks of the queue before the next turn
  std::vector<Snapshot> snapshots_;
};

}  // namespace stratagem::sim

// Finds whether the rounds of a simulation repeat: its state at a place of a round is that at the
// same place of the round before, later by a period.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/played_actor.hpp"
#include "sim/repetition.hpp"

namespace stratagem::sim {

/// Looks at places of the longest queue of any actor. If all actors are in its round, and the state
/// is that of the round before, they go on as they did then, while rounds follow. What nothing
/// follows may end sooner, since a task acts on what was launched before it by the links that it
/// loads and the kernels that it slows down. So the last round may differ from its copy, but no
/// other may: a collective would have to begin more than a round ahead.
class RepeatedRounds {
 public:
  explicit RepeatedRounds(const std::vector<PlayedActor>& actors);

  /// Has that actor come to another place at which rounds are compared?
  bool came_to_place(const std::vector<PlayedActor>& actors);
  /// The period, if the round repeats the one before.
  std::optional<Ticks> look(Snapshot now, const std::vector<PlayedActor>& actors);
  /// The round that it looks at.
  [[nodiscard]] int round() const { return round_; }

 private:
  /// Tasks of the queue that have ended at a place, of so many.
  struct Place {
    int part;
    int of;
  };
  static constexpr std::array<Place, 5> places = {{{1, 32}, {1, 16}, {1, 8}, {1, 4}, {1, 2}}};

  [[nodiscard]] bool acts_on_next_alone(const std::vector<PlayedActor>& actors, Ticks period) const;

  int actor_ = 0;
  int queue_ = 0;
  int tasks_ = 0;  ///< of the queue, in a round
  int round_ = 0;
  std::size_t next_ = 0;   ///< place of the round
  std::size_t place_ = 0;  ///< that it came to
  std::array<Snapshot, places.size()> latest_;
};

}  // namespace stratagem::sim

// Finds whether the rounds of a simulation repeat: its state at a place of a round is that at the
// same place of the round before, later by a period.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/played_actor.hpp"
#include "sim/repetition.hpp"

namespace stratagem::sim {

/// At some checkpoints of a round it compares the state with that at the same checkpoint of the
/// round before. If both are equal, this round and all later ones are copies of the round before,
/// each a period later. The last round is an exception: nothing follows it, while what followed its
/// original may have delayed that. Only the last one is, since a repetition counts only if no
/// collective begins more than a round ahead: a task acts on what was launched before it by the
/// links that it loads and the kernels that it slows down, and by nothing else.
class RepeatedRounds {
 public:
  explicit RepeatedRounds(const std::vector<PlayedActor>& actors);

  /// Has the simulation come to another checkpoint?
  bool came_to_checkpoint(const std::vector<PlayedActor>& actors);
  /// The period, if the round repeats the one before. Remembers the snapshot for the next round.
  std::optional<Ticks> look(Snapshot now, const std::vector<PlayedActor>& actors);
  /// The round that it looks at.
  [[nodiscard]] int round() const { return round_; }

 private:
  /// A share of the tasks of the longest queue of any actor has ended. The earlier two states are
  /// equal, the less is simulated, but the first round begins otherwise than others.
  struct Checkpoint {
    int part;
    int of;
  };
  static constexpr std::array<Checkpoint, 5> checkpoints = {
      {{1, 32}, {1, 16}, {1, 8}, {1, 4}, {1, 2}}};

  [[nodiscard]] bool acts_on_round_before_alone(const std::vector<PlayedActor>& actors,
                                                Ticks period) const;

  int actor_ = 0;
  int queue_ = 0;  ///< the longest
  int tasks_ = 0;  ///< of that, in a round
  int round_ = 0;
  std::size_t next_ = 0;     ///< checkpoint of the round
  std::size_t reached_ = 0;  ///< the latest checkpoint
  std::array<Snapshot, checkpoints.size()> latest_;
};

}  // namespace stratagem::sim

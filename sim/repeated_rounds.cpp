// Compares the state at each checkpoint with that of the round before.
#include "sim/repeated_rounds.hpp"

#include <algorithm>
#include <utility>

namespace stratagem::sim {

RepeatedRounds::RepeatedRounds(const std::vector<PlayedActor>& actors) {
  for (std::size_t a = 0; a < actors.size(); ++a) {
    const auto& queues = actors[a].sequence().in_queue;
    for (std::size_t q = 0; q < queues.size(); ++q) {
      if (static_cast<int>(queues[q].size()) <= tasks_) continue;
      actor_ = static_cast<int>(a);
      queue_ = static_cast<int>(q);
      tasks_ = static_cast<int>(queues[q].size());
    }
  }
}

bool RepeatedRounds::came_to_checkpoint(const std::vector<PlayedActor>& actors) {
  if (tasks_ == 0) return false;
  const auto [round, ended] = actors[actor_].round_and_ended(queue_);
  if (round != round_) next_ = 0;
  round_ = round;
  const auto is_at = [&, ended = ended](const Checkpoint& checkpoint) {
    return ended * checkpoint.of >= checkpoint.part * tasks_;
  };
  if (next_ == checkpoints.size() || !is_at(checkpoints[next_])) return false;
  while (next_ < checkpoints.size() && is_at(checkpoints[next_])) reached_ = next_++;
  return true;
}

std::optional<Ticks> RepeatedRounds::look(Snapshot now, const std::vector<PlayedActor>& actors) {
  const auto is_of = [](const Snapshot& snapshot, int round) {
    return !snapshot.places.empty() &&
           std::ranges::all_of(snapshot.places, [&](const auto& p) { return p.round == round; });
  };
  const Snapshot before = std::exchange(latest_[reached_], std::move(now));
  const Snapshot& latest = latest_[reached_];
  if (!is_of(before, round_ - 1) || !is_of(latest, round_)) return std::nullopt;
  if (before.state != latest.state) return std::nullopt;
  const Ticks period = latest.state.now() - before.state.now();
  return acts_on_round_before_alone(actors, period) ? std::optional(period) : std::nullopt;
}

/// Does every collective begin after the end of the round that is two before its own?
bool RepeatedRounds::acts_on_round_before_alone(const std::vector<PlayedActor>& actors,
                                                Ticks period) const {
  Instant end{0}, first = never;
  for (const PlayedActor& actor : actors) {
    end = std::max(end, actor.end_of(round_ - 1));
    first = std::min(first, actor.first_collective(round_, period));
  }
  return first == never || end <= first + period;
}

}  // namespace stratagem::sim

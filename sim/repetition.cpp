// Compares each snapshot with the latest ones.
#include "sim/repetition.hpp"

#include <algorithm>
#include <utility>

namespace stratagem::sim {
namespace {

/// How many turns of its long loop an actor went on by; 0: it is not in that loop, or went on by no
/// whole turn.
int turns_between(const FlatLoop& loop, int number, const PlayedActor::Place& before,
                  const PlayedActor::Place& now) {
  if (before.loop != number || now.loop != number || before.round != now.round) return 0;
  const int tasks = now.host - before.host;
  return tasks % loop.width == 0 ? tasks / loop.width : 0;
}

}  // namespace

Repetition::Repetition(const program::Shorter& shorter, const Folding& folding,
                       const std::vector<PlayedActor>& actors) {
  for (const Actor& actor : folding.actors)
    long_loops_.push_back(shorter.long_loops[actor.sequence]);
  const auto loop_of = [&](std::size_t a) -> const FlatLoop& {
    return actors[a].sequence().loops[long_loops_[a].loop];
  };
  for (std::size_t a = 1; a < actors.size(); ++a) {
    if (loop_of(a).turns < loop_of(actor_).turns) actor_ = static_cast<int>(a);
  }
  const FlatLoop& loop = loop_of(actor_);
  const auto& queues = actors[actor_].sequence().in_queue;
  for (std::size_t q = 0; q < queues.size(); ++q) {
    const auto before = [&](int task) {
      return static_cast<int>(std::ranges::lower_bound(queues[q], task) - queues[q].begin());
    };
    const int first = before(loop.begin);
    const int width = before(loop.begin + loop.width) - first;
    if (width <= width_) continue;
    queue_ = static_cast<int>(q);
    first_ = first;
    width_ = width;
    end_ = before(loop.end());
  }
}

bool Repetition::came_to_turn(const std::vector<PlayedActor>& actors) {
  const auto [round, ended] = actors[actor_].round_and_ended(queue_);
  if (round != round_) {
    round_ = round;
    next_ = first_;
    snapshots_.clear();
  }
  if (rounds() > round_ || width_ == 0 || ended < next_ || ended >= end_) return false;
  next_ = first_ + ((ended - first_) / width_ + 1) * width_;
  return true;
}

void Repetition::look(Snapshot now, const std::vector<PlayedActor>& actors) {
  for (const Snapshot& before : snapshots_) {
    if (before.state != now.state) continue;
    const int periods = periods_between(before, now, actors);
    if (periods == 0) continue;
    LeftOut& found = found_.emplace_back();
    found.from = before.state.now();
    found.to = now.state.now();
    found.periods = periods;
    for (std::size_t a = 0; a < actors.size(); ++a)
      found.launched.push_back({before.places[a].host, now.places[a].host});
    snapshots_.clear();
    return;
  }
  if (snapshots_.size() == remembered) snapshots_.erase(snapshots_.begin());
  snapshots_.push_back(std::move(now));
}

void Repetition::repeat(int rounds, Ticks later) {
  while (this->rounds() < rounds) {
    LeftOut next = found_.back();
    next.from = next.from + later;
    next.to = next.to + later;
    found_.push_back(std::move(next));
  }
}

/// 0 if the turns that the actors lack are not as many periods for all.
int Repetition::periods_between(const Snapshot& before, const Snapshot& now,
                                const std::vector<PlayedActor>& actors) const {
  int periods = 0;
  for (std::size_t a = 0; a < actors.size(); ++a) {
    const auto& [loop, lacking] = long_loops_[a];
    const int turns =
        turns_between(actors[a].sequence().loops[loop], loop, before.places[a], now.places[a]);
    if (turns == 0 || lacking % turns != 0) return 0;
    if (before.places[a].round != rounds()) return 0;
    if (a > 0 && lacking / turns != periods) return 0;
    periods = lacking / turns;
  }
  return periods;
}

}  // namespace stratagem::sim

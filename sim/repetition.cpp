// Compares each snapshot with the latest ones.
#include "sim/repetition.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace stratagem::sim {
namespace {

/// The loop with the most tasks; nullptr where there is none.
const FlatLoop* main_loop(const FlatSequence& sequence) {
  const auto longest = std::ranges::max_element(
      sequence.loops, {}, [](const FlatLoop& loop) { return loop.width * loop.turns; });
  return longest == sequence.loops.end() ? nullptr : &*longest;
}

/// How often an actor can go on from `now` as from `before` to `now` until its loop ends.
int periods_left(const PlayedActor& actor, const PlayedActor::Place& before,
                 const PlayedActor::Place& now) {
  if (before.round != now.round || before.loop != now.loop || before.host >= now.host) return 0;
  const FlatLoop& loop = actor.sequence().loops[now.loop];
  return (loop.end() - 1 - now.host) / (now.host - before.host);
}

}  // namespace

Repetition::Repetition(const std::vector<PlayedActor>& actors) {
  const FlatLoop* fewest = nullptr;
  for (std::size_t a = 0; a < actors.size(); ++a) {
    const FlatLoop* loop = main_loop(actors[a].sequence());
    if (loop == nullptr || loop->width == 0) {
      actor_ = -1;
      return;
    }
    if (fewest != nullptr && fewest->turns <= loop->turns) continue;
    fewest = loop;
    actor_ = static_cast<int>(a);
  }
  if (fewest == nullptr) return;
  const auto& queues = actors[actor_].sequence().in_queue;
  for (std::size_t q = 0; q < queues.size(); ++q) {
    const auto before = [&](int task) {
      return static_cast<int>(std::ranges::lower_bound(queues[q], task) - queues[q].begin());
    };
    const int first = before(fewest->begin);
    const int width = before(fewest->begin + fewest->width) - first;
    if (width <= width_) continue;
    queue_ = static_cast<int>(q);
    first_ = first;
    width_ = width;
    end_ = before(fewest->end());
  }
}

bool Repetition::came_to_turn(const std::vector<PlayedActor>& actors) {
  if (actor_ < 0) return false;
  const auto [round, ended] = actors[actor_].round_and_ended(queue_);
  if (round != round_) {
    round_ = round;
    next_ = first_;
    snapshots_.clear();
  }
  if (ended < next_ || ended >= end_) return false;
  next_ = first_ + ((ended - first_) / width_ + 1) * width_;
  return true;
}

std::optional<Repeated> Repetition::find(Snapshot now, const std::vector<PlayedActor>& actors) {
  for (Snapshot& before : snapshots_) {
    if (before.state != now.state) continue;
    int periods = std::numeric_limits<int>::max();
    for (std::size_t a = 0; a < actors.size(); ++a)
      periods = std::min(periods, periods_left(actors[a], before.places[a], now.places[a]));
    if (periods == 0) continue;
    Repeated repeated{.before = std::move(before), .now = std::move(now), .periods = periods};
    snapshots_.clear();
    return repeated;
  }
  if (snapshots_.size() == remembered) snapshots_.erase(snapshots_.begin());
  snapshots_.push_back(std::move(now));
  return std::nullopt;
}

}  // namespace stratagem::sim

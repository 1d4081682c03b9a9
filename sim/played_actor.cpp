// Reads the times of what a task waits for, and notes its own.
#include "sim/played_actor.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::sim {

PlayedActor::PlayedActor(const FlatSequence& sequence, int iterations, int lag, int launch_queue)
    : sequence_(&sequence),
      iterations_(iterations),
      rounds_(iterations + lag),
      host_(sequence, iterations, rounds_, launch_queue),
      queues_(sequence.queues.size()) {
  for (auto* times : {&times_.begins, &times_.ends})
    times->assign(rounds_, std::vector<Instant>(sequence.tasks.size(), unknown));
  times_.launches.assign(lag + 1, times_.ends.front());
}

/// The host goes by in the time that launching a task would take whose iteration does not exist,
/// which is pessimistic before the first and after the last iteration.
std::optional<PlayedActor::Next> PlayedActor::next_of(QueueState& line, int queue) {
  const int task = sequence_->in_queue[queue][line.next];
  const Instant& launched = times_.begins[line.round][task];
  if (launched == unknown) {
    line.missing = &launched;
    return std::nullopt;
  }
  const int iteration = line.round - sequence_->price(task).lag;
  if (iteration < 0 || iteration >= iterations_) {
    const Next passed_over{.launched = launched, .ready = never_ran};
    times_.begins[line.round][task] = times_.ends[line.round][task] = never_ran;
    move_on(line, queue);
    return passed_over;
  }
  const Instant ready = ready_time(line, task);
  if (ready == unknown) return std::nullopt;
  return Next{.task = task, .round = line.round, .launched = launched, .ready = ready};
}

Instant PlayedActor::ready_time(QueueState& line, int task) const {
  Instant ready =
      std::max(times_.begins[line.round][task] + sequence_->price(task).first_launch, line.tail);
  const std::vector<Instant>& ends = times_.ends[line.round];
  for (const FlatWait& wait : sequence_->waits_of(task)) {
    const Instant& end = ends[sequence_->waited_for(task, wait)];
    if (end == unknown) {
      line.missing = &end;
      return unknown;
    }
    ready = std::max(ready, end);
  }
  return ready;
}

void PlayedActor::finish(int queue, Instant begin, Instant end) {
  QueueState& line = queues_[queue];
  const int task = sequence_->in_queue[queue][line.next];
  times_.begins[line.round][task] = begin;
  times_.ends[line.round][task] = end;
  line.tail = end;
  line.busy = false;
  move_on(line, queue);
}

void PlayedActor::move_on(QueueState& line, int queue) {
  if (++line.next < sequence_->in_queue[queue].size()) return;
  line.next = 0;
  ++line.round;
}

std::optional<PlayedActor::Place> PlayedActor::place() const {
  if (host_.round() == rounds_) return std::nullopt;
  const auto after = std::ranges::upper_bound(sequence_->loops, host_.next(), {}, &FlatLoop::begin);
  const auto loop = static_cast<int>(after - sequence_->loops.begin()) - 1;
  if (loop < 0 || !sequence_->loops[loop].has(host_.next())) return std::nullopt;
  Place place{.round = host_.round(), .loop = loop, .host = host_.next(), .ended = {}};
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    const QueueState& line = queues_[q];
    const bool wrapped = line.round == place.round + 1 && line.next == 0;
    if (line.round != place.round && !wrapped) return std::nullopt;
    place.ended.push_back(static_cast<int>(wrapped ? sequence_->in_queue[q].size() : line.next));
  }
  return place;
}

/// -1 after the last one.
int PlayedActor::next_task(int queue, int ended) const {
  const std::vector<int>& tasks = sequence_->in_queue[queue];
  return ended < static_cast<int>(tasks.size()) ? tasks[ended] : -1;
}

bool PlayedActor::is_over(int round, int task, Instant bound) const {
  const Instant end = times_.ends[round][task];
  return end != unknown && end <= bound;
}

bool PlayedActor::write(RelativeState& state, const Place& place) {
  const FlatLoop& loop = sequence_->loops[place.loop];
  state.add(place.loop);
  state.add((place.host - loop.begin) % loop.width);
  state.add(collectives);
  if (!host_.write(state, times_, loop)) return false;
  const std::optional<Instant> bound = write_queues(state, place);
  return bound && write_ends(state, place, *bound);
}

/// Returns an instant before which no later task begins, now at the latest: none of a queue in the
/// loop begins before the queue's last one has ended, none of another queue before the host
/// launches it, and the host does not go back.
std::optional<Instant> PlayedActor::write_queues(RelativeState& state, const Place& place) const {
  const FlatLoop& loop = sequence_->loops[place.loop];
  const Instant over = std::min(host_.now(), state.now());
  Instant bound = over;
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    const QueueState& line = queues_[q];
    const int next = next_task(static_cast<int>(q), place.ended[q]);
    const bool inside = next >= 0 && loop.has(next);
    if (!inside && next >= 0 && next < place.host) return std::nullopt;
    if (inside) bound = std::min(bound, line.tail);
    state.add(inside ? 1 : 0);
    state.add(inside ? place.host - next : place.ended[q]);
    state.add(line.busy ? 1 : 0);
    if (inside || line.tail > over) {
      state.add(line.tail);
    } else {
      state.add_past();
    }
  }
  return bound;
}

/// An end that is not after `bound` makes nothing later, and is no later than now. All other ends
/// must be of tasks in the loop: there whoever waits for a task waits in the next turn for the same
/// task of that turn. Begins are those of launches until a task has ended.
bool PlayedActor::write_ends(RelativeState& state, const Place& place, Instant bound) {
  if (std::exchange(settled_round_, place.round) != place.round) settled_ = 0;
  while (settled_ < place.host && is_over(place.round, settled_, bound)) ++settled_;
  if (settled_ < sequence_->loops[place.loop].begin) return false;
  state.add(place.host - settled_);
  for (int task = settled_; task < place.host; ++task) {
    const bool ended = times_.ends[place.round][task] != unknown;
    state.add(ended ? 1 : 0);
    if (is_over(place.round, task, bound)) {
      state.add_past();
      continue;
    }
    state.add(times_.begins[place.round][task]);
    if (ended) state.add(times_.ends[place.round][task]);
  }
  return true;
}

void PlayedActor::put_off(std::vector<Instant>& iteration_ends) const {
  for (int round = 0; round < rounds_; ++round) {
    for (std::size_t task = 0; task < sequence_->tasks.size(); ++task) {
      const Instant end = times_.ends[round][task];
      expects(end != unknown, "no rank waits for ever");
      if (end == never_ran) continue;
      Instant& last = iteration_ends[round - sequence_->price(task).lag];
      last = std::max(last, end);
    }
  }
}

}  // namespace stratagem::sim

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
  times_.begins.resize(rounds_);
  times_.ends.resize(rounds_);
  for (int round = 0; round < std::min(rounds_, 2); ++round)
    times_.add_round(round, sequence.tasks.size());
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

FlatLoop PlayedActor::loop_of(const Place& place) const {
  if (place.loop != whole_round) return sequence_->loops[place.loop];
  const auto tasks = static_cast<int>(sequence_->tasks.size());
  return {.begin = 0, .width = std::max(tasks, 1), .turns = 1};
}

std::optional<PlayedActor::Place> PlayedActor::place_in_loop() const {
  const auto after = std::ranges::upper_bound(sequence_->loops, host_.next(), {}, &FlatLoop::begin);
  const auto loop = static_cast<int>(after - sequence_->loops.begin()) - 1;
  if (loop < 0 || !sequence_->loops[loop].has(host_.next())) return std::nullopt;
  std::optional<Place> place = place_in_round();
  if (place) place->loop = loop;
  return place;
}

std::optional<PlayedActor::Place> PlayedActor::place_in_round() const {
  if (host_.round() == rounds_) return std::nullopt;
  Place place{.round = host_.round(), .host = host_.next(), .ended = {}};
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
  const FlatLoop loop = loop_of(place);
  state.add(place.loop);
  state.add((place.host - loop.begin) % loop.width);
  state.add(collectives);
  if (!host_.write(state, times_, loop)) return false;
  const std::optional<Instant> bound = write_queues(state, place);
  return bound && write_ends(state, place, *bound);
}

/// Returns an instant before which no later task begins, now at the latest: none of a queue begins
/// before its launch, nor before the queue's last one has ended, and the host does not go back.
std::optional<Instant> PlayedActor::write_queues(RelativeState& state, const Place& place) const {
  const FlatLoop loop = loop_of(place);
  const Instant over = std::min(host_.now(), state.now());
  Instant bound = over;
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    const QueueState& line = queues_[q];
    const int next = next_task(static_cast<int>(q), place.ended[q]);
    const bool inside = next >= 0 && loop.has(next);
    const bool launched = next >= 0 && next < place.host;
    if (!inside && launched) return std::nullopt;
    const Instant earliest = launched ? times_.begins[place.round][next] : over;
    if (launched) bound = std::min(bound, std::max(earliest, line.tail));
    state.add(inside ? 1 : 0);
    state.add(inside ? place.host - next : place.ended[q]);
    state.add(line.busy ? 1 : 0);
    if (line.busy || line.tail <= earliest) {
      state.add_past();
    } else {
      state.add(line.tail);
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
  if (settled_ < loop_of(place).begin) return false;
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

void PlayedActor::repeat(int round, Ticks later) {
  rounds_ = iterations_ = round + 2;
  times_.begins.resize(rounds_);
  times_.ends.resize(rounds_);
  for (; round < rounds_; ++round) {
    if (times_.ends[round].empty()) times_.add_round(round, sequence_->tasks.size());
    const std::vector<Instant>&begins = times_.begins[round - 1], &ends = times_.ends[round - 1];
    for (std::size_t task = 0; task < sequence_->tasks.size(); ++task) {
      Instant& end = times_.ends[round][task];
      if (end != unknown) continue;
      times_.begins[round][task] = begins[task] + later;
      end = ends[task] + later;
    }
  }
}

Instant PlayedActor::first_collective(int round, Ticks later) const {
  Instant first = never;
  for (std::size_t task = 0; task < sequence_->tasks.size(); ++task) {
    if (sequence_->price(task).collective == nullptr) continue;
    const bool ended = times_.ends[round][task] != unknown;
    first = std::min(first,
                     ended ? times_.begins[round][task] : times_.begins[round - 1][task] + later);
  }
  return first;
}

Instant PlayedActor::end_of(int round) const {
  Instant last{0};
  for (const Instant end : times_.ends[round]) {
    expects(end != unknown, "no rank waits for ever");
    last = std::max(last, end);
  }
  return last;
}

void PlayedActor::put_off(std::vector<Instant>& iteration_ends) const {
  for (int round = 0; round < rounds_; ++round) {
    if (rounds_ == iterations_) {
      iteration_ends[round] = std::max(iteration_ends[round], end_of(round));
      continue;
    }
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

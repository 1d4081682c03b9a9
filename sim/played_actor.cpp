// Reads the times of what a task waits for, and notes its own.
#include "sim/played_actor.hpp"

#include <algorithm>

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
std::optional<PlayedActor::Next> PlayedActor::next(int queue) {
  QueueState& line = queues_[queue];
  if (line.busy || line.round == rounds_) return std::nullopt;
  const int task = sequence_->in_queue[queue][line.next];
  const Instant launched = times_.begins[line.round][task];
  if (launched == unknown) return std::nullopt;
  const int iteration = line.round - sequence_->price(task).lag;
  if (iteration < 0 || iteration >= iterations_) {
    times_.begins[line.round][task] = times_.ends[line.round][task] = never_ran;
    move_on(line, queue);
    return Next{.launched = launched, .ready = never_ran};
  }
  const Instant ready = ready_time(line, task);
  if (ready == unknown) return std::nullopt;
  return Next{.task = task, .round = line.round, .launched = launched, .ready = ready};
}

Instant PlayedActor::ready_time(const QueueState& line, int task) const {
  Instant ready =
      std::max(times_.begins[line.round][task] + sequence_->price(task).first_launch, line.tail);
  const std::vector<Instant>& ends = times_.ends[line.round];
  for (const FlatWait& wait : sequence_->waits_of(task)) {
    const Instant end = ends[sequence_->waited_for(task, wait)];
    if (end == unknown) return unknown;
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

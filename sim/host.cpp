// Before each launch: what the host waits for, then room in the queue of the stream.
#include "sim/host.hpp"

#include <algorithm>

namespace stratagem::sim {

Host::Host(const FlatSequence& sequence, int iterations, int rounds, int launch_queue)
    : sequence_(&sequence),
      iterations_(iterations),
      rounds_(sequence.tasks.size() == 0 ? 0 : rounds),
      launch_queue_(launch_queue),
      launched_(sequence.queues.size()) {}

bool Host::come_to_tasks(ActorTimes& times) {
  bool moved = false;
  for (; round_ < rounds_ && knows_waits(times.ends) && find_room(times.ends); moved = true)
    launch(times);
  return moved;
}

/// Does the host know until when it waits before the next task?
bool Host::knows_waits(const Ends& ends) {
  const bool first = next_ == 0;
  const std::size_t before = (first ? sequence_->tasks.size() : next_) - 1;
  const int round = first ? round_ - 1 : round_;
  if (round >= 0 && sequence_->price(before).synchronises && !wait_for(ends[round][before]))
    return false;
  return std::ranges::all_of(sequence_->host_waits_of(next_), [&](const FlatHostWait& wait) {
    if (wait.list < 0) return wait_for(ends[round_][sequence_->waited_for(next_, wait.of)]);
    return std::ranges::all_of(sequence_->host_queues[wait.list],
                               [&](int queue) { return wait_for_launched(ends, queue); });
  });
}

bool Host::wait_for(const Instant& end) {
  if (end == unknown) {
    missing_ = &end;
    return false;
  }
  now_ = std::max(now_, end);
  return true;
}

bool Host::wait_for_launched(const Ends& ends, int queue) {
  const Launched& launched = launched_[queue];
  return launched.last_round < 0 || wait_for(ends[launched.last_round][launched.last_task]);
}

bool Host::find_room(const Ends& ends) {
  const int launches = sequence_->price(next_).launches;
  const int number = sequence_->tasks.body(next_).queue;
  Launched& launched = launched_[number];
  while (launches > 0 && launched.pending > 0 && launched.pending > launch_queue_ - launches) {
    const int oldest = sequence_->in_queue[number][launched.oldest];
    full_ = !wait_for(ends[launched.round][oldest]);
    if (full_) return false;
    forget_oldest(number);
  }
  launched.pending += launches;
  return true;
}

void Host::forget_oldest(int number) {
  const std::vector<int>& queue = sequence_->in_queue[number];
  Launched& launched = launched_[number];
  launched.pending -= sequence_->price(queue[launched.oldest]).launches;
  if (++launched.oldest < queue.size()) return;
  launched.oldest = 0;
  ++launched.round;
}

bool Host::write(RelativeState& state, const ActorTimes& times, const FlatLoop& loop) {
  state.add(now_);
  state.add(full_ ? 1 : 0);
  const auto ended = [&](int round, int task) {
    const Instant end = times.ends[round][task];
    return end != unknown && end <= now_;
  };
  for (std::size_t q = 0; q < launched_.size(); ++q) {
    Launched& launched = launched_[q];
    const std::vector<int>& queue = sequence_->in_queue[q];
    while (launched.pending > 0 && ended(launched.round, queue[launched.oldest]))
      forget_oldest(static_cast<int>(q));
    state.add(launched.pending);
    if (launched.pending > 0) {
      if (launched.round != round_ || queue[launched.oldest] < loop.begin) return false;
      state.add(next() - queue[launched.oldest]);
    }
    if (launched.last_round < 0 || ended(launched.last_round, launched.last_task)) {
      state.add_past();
    } else {
      if (launched.last_round != round_ || launched.last_task < loop.begin) return false;
      state.add(next() - launched.last_task);
    }
  }
  return true;
}

void Host::launch(ActorTimes& times) {
  times.begins[round_][next_] = now_;
  if (round_ < static_cast<int>(times.launches.size())) times.launches[round_][next_] = now_;
  const FlatPrice& price = sequence_->price(next_);
  now_ = now_ + price.host;
  const int iteration = round_ - price.lag;
  if (iteration >= 0 && iteration < iterations_) {
    Launched& launched = launched_[sequence_->tasks.body(next_).queue];
    launched.last_round = round_;
    launched.last_task = static_cast<int>(next_);
  }
  if (++next_ < sequence_->tasks.size()) return;
  next_ = 0;
  ++round_;
  if (round_ + 1 < rounds_)
    times.add_round(round_ + 1, sequence_->tasks.size());  // a queue may enter it first
}

}  // namespace stratagem::sim

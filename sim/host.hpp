// Simulates the host that launches a device's tasks: its clock, what it waits for, and room in
// queues. Time and memory read the same one.
#pragma once

#include <vector>

#include "sim/flat_sequence.hpp"
#include "sim/relative_state.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// The host of one actor. It comes to the tasks in the order of their launches, round by round, and
/// launching each takes its price. Before a task it waits
///   - for what the program says: `host_waits` of the call, and a task that synchronises
///   - for room: until the kernels launched on the task's stream that have not ended, together with
///     those of the task, are no more than `launch_queue`, or until there are none but the task's
/// It stops at a task while the end of anything that it waits for is unknown.
class Host {
 public:
  Host(const FlatSequence& sequence, int iterations, int rounds, int launch_queue);

  /// Goes on as far as the ends of tasks are known; true if it came to any task. Notes in `times`
  /// when it came to each: no task begins earlier, and in the first rounds it is the launch.
  bool advance(ActorTimes& times) {
    return (missing_ == nullptr || *missing_ != unknown) && come_to_tasks(times);
  }

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] int round() const { return round_; }
  /// The task of the round that it comes to next.
  [[nodiscard]] int next() const { return static_cast<int>(next_); }
  /// Adds what it will read; false if that is of tasks before the loop. Forgets launches that have
  /// ended, for which it would not wait.
  bool write(RelativeState& state, const ActorTimes& times, const FlatLoop& loop);

  /// Has it stopped because the queue of a stream is full?
  [[nodiscard]] bool full() const { return full_; }

 private:
  using Ends = std::vector<std::vector<Instant>>;

  struct Launched {
    int last_round = -1;  ///< of the last task
    int last_task = 0;
    int pending = 0;         ///< launches that may not have ended
    int round = 0;           ///< of the oldest of their tasks
    std::size_t oldest = 0;  ///< in the queue
  };

  bool come_to_tasks(ActorTimes& times);
  [[nodiscard]] bool knows_waits(const Ends& ends);
  [[nodiscard]] bool wait_for(const Instant& end);
  [[nodiscard]] bool wait_for_launched(const Ends& ends, int queue);
  [[nodiscard]] bool find_room(const Ends& ends);
  void launch(ActorTimes& times);
  void forget_oldest(int queue);

  const FlatSequence* sequence_;
  int iterations_;
  int rounds_;
  int launch_queue_;
  Instant now_{0};
  bool full_ = false;
  const Instant* missing_ = nullptr;  ///< an end that it waits for, unknown when it last looked
  int round_ = 0;
  std::size_t next_ = 0;            ///< task of the round
  std::vector<Launched> launched_;  ///< by queue
};

}  // namespace stratagem::sim

// One actor of a simulation: its host, its queues, and when its tasks began and ended.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/flat_sequence.hpp"
#include "sim/host.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// Knows which task of each queue is next, and when all that it waits for has ended. It is told
/// when a task ends, since that may depend on other actors and on communication.
class PlayedActor {
 public:
  /// Iterations are those that are simulated; as many rounds more are played as the program's lag.
  PlayedActor(const FlatSequence& sequence, int iterations, int lag, int launch_queue);

  /// The next task of a queue, and when it may begin.
  struct Next {
    int task = 0;
    int round = 0;
    Instant launched;  ///< when its first launch began
    Instant ready;  ///< never_ran: its iteration does not exist, and the queue has passed over it
  };
  /// Empty while anything that it waits for is unknown, and at the end.
  std::optional<Next> next(int queue) {
    return stands_still(queues_[queue]) ? std::nullopt : next_of(queues_[queue], queue);
  }
  /// Until `finish` the queue waits for the end of its task.
  void hold(int queue) { queues_[queue].busy = true; }
  /// The task of a queue that is next, or held, ran from `begin` to `end`.
  void finish(int queue, Instant begin, Instant end);
  /// The place in a round of its sequence: of the host, and of each queue how many of the tasks of
  /// the round have ended, or were passed over.
  struct Place {
    int round = 0;
    int loop = whole_round;
    int host = 0;
    std::vector<int> ended;
  };
  static constexpr int whole_round = -1;  ///< a loop of one turn: all tasks of the round
  /// Empty while any queue is in another round than the host, and at the end.
  [[nodiscard]] std::optional<Place> place_in_round() const;
  /// As place_in_round, but empty outside of loops.
  [[nodiscard]] std::optional<Place> place_in_loop() const;
  /// How many tasks of a queue have ended in its round.
  [[nodiscard]] std::pair<int, int> round_and_ended(int queue) const {
    return {queues_[queue].round, static_cast<int>(queues_[queue].next)};
  }
  /// Adds what the actor will read, if it goes on in its loop; false where that is still of tasks
  /// before the loop. Forgets what it will not read any more. Places in a loop are alike in all of
  /// its turns; a place in a round is alike only in other rounds.
  bool write(RelativeState& state, const Place& place);

  /// Copies the times of the round before, `later`, to all tasks of a round that have not ended,
  /// and to those of the next one. No round follows that.
  void repeat(int round, Ticks later);
  /// The earliest begin of a collective of a round, where those that have not ended begin as in the
  /// round before, `later`.
  [[nodiscard]] Instant first_collective(int round, Ticks later) const;
  /// The latest end of a round. Expects that all its tasks have ended.
  [[nodiscard]] Instant end_of(int round) const;

  /// The host goes on; true if it came to any task.
  bool launch() { return host_.advance(times_); }

  [[nodiscard]] const FlatSequence& sequence() const { return *sequence_; }
  [[nodiscard]] const Host& host() const { return host_; }
  /// When the last task of each iteration ended: makes later what this actor ended later. Expects
  /// that all tasks have ended.
  void put_off(std::vector<Instant>& iteration_ends) const;
  [[nodiscard]] ActorTimes take_times() { return std::move(times_); }

  int collectives = 0;  ///< that it has arrived at and that have not ended

 private:
  /// Where a queue stands.
  struct QueueState {
    int round = 0;
    std::size_t next = 0;  ///< of its tasks
    Instant tail;          ///< end of the task before
    bool busy = false;     ///< with a collective, or a kernel that one can slow down
    /// A time that its next task waits for, and that was unknown when it was last asked.
    const Instant* missing = nullptr;
  };

  [[nodiscard]] bool stands_still(const QueueState& line) const {
    return line.busy || line.round == rounds_ ||
           (line.missing != nullptr && *line.missing == unknown);
  }
  std::optional<Next> next_of(QueueState& line, int queue);
  [[nodiscard]] Instant ready_time(QueueState& line, int task) const;
  void move_on(QueueState& line, int queue);
  [[nodiscard]] int next_task(int queue, int ended) const;
  [[nodiscard]] FlatLoop loop_of(const Place& place) const;
  [[nodiscard]] bool is_over(int round, int task, Instant bound) const;
  std::optional<Instant> write_queues(RelativeState& state, const Place& place) const;
  bool write_ends(RelativeState& state, const Place& place, Instant bound);

  const FlatSequence* sequence_;
  int iterations_;
  int rounds_;
  Host host_;
  std::vector<QueueState> queues_;
  ActorTimes times_;
  int settled_round_ = 0;
  int settled_ = 0;  ///< tasks of that round whose ends make nothing later any more
};

}  // namespace stratagem::sim

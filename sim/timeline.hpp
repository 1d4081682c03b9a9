// The result of a simulation: when every task of every actor began and ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "program/program.hpp"
#include "program/shorter.hpp"
#include "sim/flat_tasks.hpp"
#include "sim/folding/folding.hpp"
#include "sim/instant.hpp"

namespace stratagem::sim {

/// Tasks that run one after another: those of a stream. Transfers have a queue for each stream and
/// group, so messages between other devices do not delay them.
struct Queue {
  program::Stream stream = program::Stream::compute;
  int group = -1;  ///< of transfers
  friend auto operator<=>(const Queue&, const Queue&) = default;
};

/// Not simulated yet.
inline constexpr Instant unknown{-1};
/// Of a task whose iteration does not exist.
inline constexpr Instant never_ran{-2};

/// Times of one actor: [round][flat task]. A collective begins when its last rank has arrived. A
/// round leaves out tasks of iterations before the first or after the last; these begin and end at
/// `never_ran`.
struct ActorTimes {
  std::vector<std::vector<Instant>> begins;
  std::vector<std::vector<Instant>> ends;
  /// When the host came to each task, what it waited for before being over, for as many of the
  /// first rounds as may be under way at once.
  std::vector<std::vector<Instant>> launches;

  /// Makes room for the tasks of a round.
  void add_round(int round, std::size_t tasks) {
    begins[round].assign(tasks, unknown);
    ends[round].assign(tasks, unknown);
  }
};

/// Periods that a timeline leaves out. In a round, what happened after `from` and until `to`
/// happens so many times more, a period later each time; only then it goes on as the timeline says.
struct LeftOut {
  struct Launched {
    int begin = 0;
    int end = 0;
  };
  Instant from;
  Instant to;
  int periods = 0;
  std::vector<Launched> launched;  ///< by actor: tasks of one period, in the order of launches
};

/// A buffer that is live after the last task of a period, and the one that was in its place before
/// the first: the same of an earlier micro-batch. Numbers are those of program::Buffers.
struct Renamed {
  int after = 0;
  int before = 0;
};

struct Timeline {
  std::vector<FlatTasks> tasks;            ///< by sequence
  std::vector<std::vector<Queue>> queues;  ///< by sequence
  std::vector<Actor> actors;
  std::vector<int> actor_of;      ///< by device
  std::vector<ActorTimes> times;  ///< by actor
  /// In full: when the last task of each iteration ended anywhere.
  std::vector<Instant> iteration_ends;
  int lag = 0;  ///< rounds beyond the iterations
  /// Rounds that were simulated to their ends. If they are not all, two more follow as copies of
  /// the last one. The copy of a round has a follower, so the very last one may end too late.
  int simulated_rounds = 0;
  bool steady = false;            ///< the measured period is that before it, or rounds repeat
  program::Shorter played;        ///< the sequences, of which tasks are
  std::vector<LeftOut> left_out;  ///< by round; none: it has all turns of all loops
  /// By actor, if turns are left out: all buffers that a period of the first round renames, in the
  /// order of launches; others are live before and after it.
  std::vector<std::vector<Renamed>> renamed;

  /// The iteration of which a period is measured, from its predecessor's end to its own: one that
  /// others follow as far as iterations overlap, since they may delay its end.
  [[nodiscard]] std::size_t measured_iteration() const {
    const std::size_t last = iteration_ends.size() - 1;
    return std::min(last, std::max<std::size_t>(last - lag, 2) - 1);
  }
  /// Expects two iterations.
  [[nodiscard]] Ticks measured_period() const { return period(measured_iteration()); }
  /// From the end of the iteration before to that of an iteration.
  [[nodiscard]] Ticks period(std::size_t iteration) const {
    return iteration_ends[iteration] - iteration_ends[iteration - 1];
  }

  [[nodiscard]] bool repeats_rounds() const {
    return simulated_rounds < static_cast<int>(iteration_ends.size()) + lag;
  }

  /// An instant of this timeline, with the periods before it that it leaves out.
  [[nodiscard]] Instant in_full(Instant own) const {
    Instant full = own;
    for (const LeftOut& one : left_out) {
      if (own > one.to) full = full + one.periods * (one.to - one.from);
    }
    return full;
  }
  /// And back. Expects an instant in no period that is left out.
  [[nodiscard]] Instant own(Instant full) const {
    Instant own = full;
    for (const LeftOut& one : left_out) {
      if (own > one.to) own = own + -one.periods * (one.to - one.from);
    }
    return own;
  }
};

}  // namespace stratagem::sim

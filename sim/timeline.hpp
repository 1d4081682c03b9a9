// The result of a simulation: when every task of every actor began and ended.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"
#include "sim/flat_tasks.hpp"
#include "sim/folding.hpp"
#include "sim/instant.hpp"

namespace stratagem::sim {

/// Tasks that run one after another: those of a stream. Transfers have a queue for each stream and
/// group, so messages between other devices do not delay them.
struct Queue {
  program::Stream stream = program::Stream::compute;
  int group = -1;  ///< of transfers
  friend auto operator<=>(const Queue&, const Queue&) = default;
};

/// Times of one actor: [round][flat task]. A collective begins when its last rank has arrived. A
/// round leaves out tasks of iterations before the first or after the last; these begin and end at
/// `never_ran`.
struct ActorTimes {
  std::vector<std::vector<Instant>> begins;
  std::vector<std::vector<Instant>> ends;
  /// When the host came to each task, what it waited for before being over, for as many of the
  /// first rounds as may be under way at once.
  std::vector<std::vector<Instant>> launches;
};

inline constexpr Instant never_ran{-2};

struct Timeline {
  std::vector<FlatTasks> tasks;            ///< by sequence
  std::vector<std::vector<Queue>> queues;  ///< by sequence
  std::vector<Actor> actors;
  std::vector<int> actor_of;            ///< by device
  std::vector<ActorTimes> times;        ///< by actor
  std::vector<Instant> iteration_ends;  ///< when the last task of each iteration ended anywhere
  int lag = 0;                          ///< rounds beyond the iterations
  bool steady = false;                  ///< the last two periods agree to the picosecond
  int jumped = 0;                       ///< periods of loops that were copied, not simulated
};

}  // namespace stratagem::sim

// A sequence laid out for the engine: one array of tasks, queues per stream, what tasks and the
// host wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"
#include "sim/price.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// What the engine reads of a task, by flat index.
struct FlatPrice {
  Ticks device;
  Ticks first_launch;       ///< host time to its first launch
  Ticks host;               ///< host time of all its launches
  Ticks last_kernel;        ///< device time of its last kernel
  int launches = 0;         ///< of kernels, which the queue of a stream holds
  int first_wait = 0;       ///< its waits are waits[first_wait .. first_wait of the next task)
  int first_host_wait = 0;  ///< the same of host_waits
  int slowdown = 0;         ///< millionths of its speed that it loses beside communication
  const program::Collective* collective = nullptr;  ///< nullptr for kernels
  int ordinal = 0;  ///< of a collective: how many of its group come before it in its iteration
  int lag = 0;      ///< round r runs it for iteration r - lag
};

/// What the host waits for before a task: a task, of the round before if it is not an earlier one,
/// or (task -1) all that it has launched into the queues of a list.
struct FlatHostWait {
  int task = -1;
  int queues = 0;
};

struct FlatSequence {
  std::vector<FlatTask> tasks;
  std::vector<FlatPrice> prices;           ///< one more than tasks: it ends the last task's waits
  std::vector<int> waits;                  ///< flat indices
  std::vector<Queue> queues;               ///< ascending
  std::vector<std::vector<int>> in_queue;  ///< by queue: its tasks in order
  std::vector<int> collectives;            ///< by group: how many of it one iteration has
  std::vector<FlatHostWait> host_waits;
  /// Lists of queues, whose tasks so far the host waits for.
  std::vector<std::vector<int>> host_queues;
};

/// `slowdown`: millionths of a kernel's speed that communication takes. It is less for a task whose
/// device time includes idling, rounded to whole millionths. With `serial` the streams that do not
/// transfer are one queue (Folding::serial).
FlatSequence flatten(const program::Program& program, const program::Sequence& sequence,
                     const Prices& prices, int slowdown = 0, bool serial = false);

}  // namespace stratagem::sim

// A sequence laid out for the engine: one array of tasks, queues per stream, host times between
// synchronisations.
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
  Ticks launched;     ///< host time from the last synchronisation (or the iteration's start) to its
                      ///< first launch
  Ticks finished;     ///< host time, from there too, to its last launch, and its last kernel
  Ticks last_kernel;  ///< this alone
  int synchronisations = 0;  ///< how many tasks of the iteration before it the host waits for
  int first_wait = 0;        ///< its waits are waits[first_wait .. first_wait of the next task)
  bool synchronises = false;
  int slowdown = 0;  ///< millionths of its speed that it loses beside communication
  const program::Collective* collective = nullptr;  ///< nullptr for kernels
  int ordinal = 0;  ///< of a collective: how many of its group come before it in its iteration
  int lag = 0;      ///< round r runs it for iteration r - lag
};

struct FlatSequence {
  std::vector<FlatTask> tasks;
  std::vector<FlatPrice> prices;           ///< one more than tasks: it ends the last task's waits
  std::vector<int> waits;                  ///< flat indices
  std::vector<Queue> queues;               ///< ascending
  std::vector<std::vector<int>> in_queue;  ///< by queue: its tasks in order
  std::vector<int> collectives;            ///< by group: how many of it one iteration has
  /// Host time from the start of an iteration to the end of the launches of its first synchronising
  /// task, from there to those of the second, ..., and from the last one to the end of the
  /// iteration.
  std::vector<Ticks> host_spans;
};

/// `slowdown`: millionths of a kernel's speed that communication takes. It is less for a task whose
/// device time includes idling, rounded to whole millionths. With `serial` the streams that do not
/// transfer are one queue (Folding::serial).
FlatSequence flatten(const program::Program& program, const program::Sequence& sequence,
                     const Prices& prices, int slowdown = 0, bool serial = false);

}  // namespace stratagem::sim

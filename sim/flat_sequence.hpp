// A sequence laid out for the engine: one array of tasks, queues per stream, what tasks and the
// host wait for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "program/program.hpp"
#include "sim/price.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// What the engine reads of a stored task, which is the same in all turns of a loop.
struct FlatPrice {
  Ticks device;
  Ticks first_launch;       ///< host time to its first launch
  Ticks host;               ///< host time of all its launches
  Ticks last_kernel;        ///< device time of its last kernel
  int launches = 0;         ///< of kernels, which the queue of a stream holds
  int first_wait = 0;       ///< its waits are waits[first_wait .. first_wait of the next one)
  int first_host_wait = 0;  ///< the same of host_waits
  int slowdown = 0;         ///< millionths of its speed that it loses beside communication
  const program::Collective* collective = nullptr;  ///< nullptr for kernels
  /// Of a collective: how many of its group come before it in its iteration, in the first turn;
  /// how many more in each later one.
  int ordinal = 0;
  int later_ordinal = 0;
  int lag = 0;                ///< round r runs it for iteration r - lag
  bool synchronises = false;  ///< the host waits for it before it goes on
};

/// A task that one waits for: of a call that is so many calls before its own.
struct FlatWait {
  int calls_before = 0;
  int task = 0;
};

/// What the host waits for before a task: a task, or (list 0 or more) all that it has launched into
/// the queues of a list.
struct FlatHostWait {
  FlatWait of = {};
  int list = -1;
};

/// Tasks begin, ..., begin + width - 1, and as many more for each of the later turns.
struct FlatLoop {
  int begin = 0;
  int width = 0;
  int turns = 1;
  [[nodiscard]] int end() const { return begin + width * turns; }
  [[nodiscard]] bool has(int task) const { return begin <= task && task < end(); }
};

struct FlatSequence {
  FlatTasks tasks;
  std::vector<FlatLoop> loops;    ///< ascending
  std::vector<FlatPrice> prices;  ///< by stored task; one more ends the last one's waits
  std::vector<FlatWait> waits;
  std::vector<Queue> queues;               ///< ascending
  std::vector<std::vector<int>> in_queue;  ///< by queue: its tasks in order
  std::vector<int> collectives;            ///< by group: how many of it one iteration has
  std::vector<FlatHostWait> host_waits;
  /// Lists of queues, whose tasks so far the host waits for.
  std::vector<std::vector<int>> host_queues;

  // Of a task by number:
  [[nodiscard]] const FlatPrice& price(std::size_t task) const { return prices[tasks.place(task)]; }
  [[nodiscard]] std::span<const FlatWait> waits_of(std::size_t task) const {
    const FlatPrice* price = &this->price(task);
    return {waits.begin() + price[0].first_wait, waits.begin() + price[1].first_wait};
  }
  [[nodiscard]] std::span<const FlatHostWait> host_waits_of(std::size_t task) const {
    const FlatPrice* price = &this->price(task);
    return {host_waits.begin() + price[0].first_host_wait,
            host_waits.begin() + price[1].first_host_wait};
  }
  [[nodiscard]] int waited_for(std::size_t task, const FlatWait& wait) const {
    return tasks.number(tasks.call(task) - wait.calls_before, wait.task);
  }
  [[nodiscard]] int ordinal(std::size_t task) const {
    return price(task).ordinal + tasks.turn(task) * price(task).later_ordinal;
  }
};

/// What of a machine acts on every task.
struct Machine {
  /// Millionths of a kernel's speed that communication takes. It is less for a task whose device
  /// time includes idling, rounded to whole millionths.
  int slowdown = 0;
  bool serial = false;  ///< streams that do not transfer are one queue (Folding::serial)
  Ticks pass = {};      ///< of the host, before the first task of a pass (Call::begins_pass)
};

FlatSequence flatten(const program::Program& program, const program::Sequence& sequence,
                     const Prices& prices, const Machine& machine = {});

}  // namespace stratagem::sim

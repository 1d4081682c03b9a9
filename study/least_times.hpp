// The least times of tasks and blocks, as if nothing else ran on the machine.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "cost/collectives.hpp"
#include "program/program.hpp"
#include "sim/price.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// Whole picoseconds, so that sums are those of a simulation.
using Picoseconds = std::int64_t;
inline constexpr Picoseconds never_reached = std::numeric_limits<Picoseconds>::min() / 4;

/// On the devices of a class. `program`, `prices` and `run` must outlive it.
class LeastTimes {
 public:
  LeastTimes(const program::Program& program, const sim::Prices& prices, const Run& run);

  /// Of a task; of a collective as if it had all links to itself and all ranks came at once.
  Picoseconds of_task(int block, int task, int device_class);

  /// When each task of a block ends, if its computations begin at 0; or if task `from` does, and
  /// nothing else holds up any other: then only what follows from it is reached. Last, the end of
  /// all computations.
  const std::vector<Picoseconds>& ends(int block, int device_class, int from = -1);
  Picoseconds span(int block, int device_class) { return ends(block, device_class).back(); }

  /// Of kernels alone, which share one queue.
  Picoseconds computing(int block);

 private:
  [[nodiscard]] std::vector<Picoseconds> found(int block, int device_class, int from);
  [[nodiscard]] Picoseconds least(const program::Collective& collective, int device_class);

  using Key = std::array<int, 3>;
  const program::Program& program_;
  const sim::Prices& prices_;
  cost::Collectives collectives_;
  std::map<int, std::vector<int>> devices_;       ///< by class
  std::map<Key, Picoseconds> collective_times_;   ///< by block, task and class
  std::map<Key, std::vector<Picoseconds>> ends_;  ///< by block, class and the task that begins
};

}  // namespace stratagem::study

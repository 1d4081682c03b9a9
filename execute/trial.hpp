// Iterations that are timed, and what they took.
#pragma once

#include <functional>
#include <vector>

#include "base/quantity.hpp"
#include "execute/interpreter.hpp"
#include "kernels/yardstick.hpp"
#include "sim/timeline.hpp"

namespace stratagem::execute {

struct TimedIteration {
  /// From a barrier to the end of the slowest rank. Where iterations overlap, from the end of the one
  /// before, with as many around it as ever.
  Seconds time;
  /// Of the slowest core, the mean of before and after; where iterations overlap before the first and
  /// after the last. 0: not asked for.
  Seconds pace;
};

/// The same on all ranks.
struct Trial {
  std::vector<TimedIteration> iterations;
  sim::Timeline timeline;      ///< of the iteration of the median time, the shorter of two;
                               ///< none where iterations overlap
  Seconds recorded;            ///< that iteration's time
  std::vector<Bytes> peaks;    ///< by rank: the most that its buffers held at once
  std::vector<Bytes> extents;  ///< by rank: of the memory in which they lie
};

/// Called on all ranks, for at least one step; `after` hears of every iteration, of those that
/// overlap when all are over. With a yardstick, or without one on all ranks alike.
template <typename T>
Trial trial(const strategies::Program& program, Interpreter<T>& rank, kernels::Communicator& world,
            int steps, const std::function<void(const TimedIteration&)>& after = {},
            kernels::Yardstick* yardstick = nullptr);

}  // namespace stratagem::execute

// Iterations that are timed, and what they took.
#pragma once

#include <functional>
#include <vector>

#include "base/quantity.hpp"
#include "execute/interpreter.hpp"
#include "sim/timeline.hpp"

namespace stratagem::execute {

/// The same on all ranks.
struct Trial {
  /// From a barrier to the end of the slowest rank. Where iterations overlap, from the end of the one
  /// before, with as many around it as ever.
  std::vector<Seconds> iterations;
  sim::Timeline timeline;      ///< of the iteration of the median time, the shorter of two;
                               ///< none where iterations overlap
  Seconds recorded;            ///< that iteration's time
  std::vector<Bytes> peaks;    ///< by rank: the most that its buffers held at once
  std::vector<Bytes> extents;  ///< by rank: of the memory in which they lie
};

/// Called on all ranks, for at least one step; `after` hears of every iteration, of those that
/// overlap when all are over.
template <typename T>
Trial trial(const strategies::Program& program, Interpreter<T>& rank, kernels::Communicator& world,
            int steps, const std::function<void(Seconds)>& after = {});

}  // namespace stratagem::execute

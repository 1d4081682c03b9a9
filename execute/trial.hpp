// The timed iterations, and their times.
#pragma once

#include <functional>
#include <vector>

#include "base/quantity.hpp"
#include "execute/interpreter.hpp"
#include "kernels/core_speed.hpp"
#include "sim/timeline.hpp"

namespace stratagem::execute {

struct TimedIteration {
  /// From a barrier to the end of the slowest rank. Where iterations overlap, from the end of the
  /// one before, with as many around it as ever.
  Seconds time;
  /// Of the slowest core, the mean of before and after; where iterations overlap before the first
  /// and after the last. 0: not asked for.
  Seconds pace;
  /// What was taken from the processor, of all ranks', that lost most (kernels/stolen_time.hpp);
  /// where iterations overlap its share of what was taken during all. 0: nothing, or not asked for.
  Seconds stolen;
};

/// Was more taken from a processor than 2 % of the iteration?
bool disturbed(const TimedIteration&);

/// Places of those that count, in the order in which they were timed: `steps` that were left alone,
/// or if there are fewer the others, too, from which least was taken, as far as there are any.
std::vector<std::size_t> counting(const std::vector<TimedIteration>&, int steps);

/// What is looked at before and after iterations: on all ranks alike.
struct Watch {
  kernels::Yardstick* yardstick = nullptr;
  std::function<std::vector<Seconds>()> stolen;  ///< as kernels::stolen_times
};

/// The same on all ranks.
struct Trial {
  std::vector<TimedIteration> iterations;  ///< also those that do not count
  sim::Timeline timeline;  ///< of the iteration of the median time of those that count, the shorter
                           ///< of two; none where iterations overlap
  Seconds recorded;        ///< that iteration's time
  std::vector<Bytes> peaks;    ///< by rank: the most that its buffers held at once
  std::vector<Bytes> extents;  ///< by rank: of the memory in which they lie
};

/// Called on all ranks, for at least one step. Goes on until so many iterations were not disturbed,
/// or three times as many were timed; where they overlap it does not. `after` hears of every
/// iteration, of those that overlap when all are over.
template <typename T>
Trial trial(const program::Program& program, Interpreter<T>& rank, kernels::Communicator& world,
            int steps, const std::function<void(const TimedIteration&)>& after = {},
            const Watch& watch = {});

}  // namespace stratagem::execute

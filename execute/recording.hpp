// Records when the tasks of an iteration ran, as a timeline like those of simulations.
#pragma once

#include <chrono>
#include <vector>

#include "kernels/ranks/communicator.hpp"
#include "program/program.hpp"
#include "sim/timeline.hpp"

namespace stratagem::execute {

/// One rank's times of one iteration, in seconds since its `start`, by task in the order of the
/// program. A receive ends when what it brought is there and was asked for.
class Recording {
 public:
  /// Forgets all times and starts the clock, for so many tasks.
  void start(std::size_t tasks);
  void begin(std::size_t task) { begins_[task] = now(); }
  void end(std::size_t task) { ends_[task] = now(); }
  /// By another clock, in seconds since `start`.
  void set(std::size_t task, double begin, double end) {
    begins_[task] = begin;
    ends_[task] = end;
  }

  [[nodiscard]] std::chrono::steady_clock::time_point started() const { return start_; }
  [[nodiscard]] double now() const;  ///< since `start`
  [[nodiscard]] const std::vector<double>& begins() const { return begins_; }
  [[nodiscard]] const std::vector<double>& ends() const { return ends_; }

 private:
  std::chrono::steady_clock::time_point start_;
  std::vector<double> begins_, ends_;
};

/// What all ranks recorded of one iteration, with an actor for every device; called on all of them,
/// and the same on all. Ranks of one server have one clock; those of several servers are held to
/// have started at the same time, so a barrier is to be passed right before. As in a simulation, a
/// collective begins when its last rank has come (`launches` says when each did), and a message
/// lasts, for both of its ranks, from when both have begun it until it has been received.
sim::Timeline timeline(const program::Program& program, const Recording& recording,
                       kernels::Communicator& world);

}  // namespace stratagem::execute

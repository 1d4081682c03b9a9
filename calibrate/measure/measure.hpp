// `calibrate measure`: times this machine's kernels, and writes what it found as it goes.
#pragma once

#include <functional>
#include <string>

#include "calibrate/measure/cpu_experiments.hpp"
#include "kernels/communicator.hpp"

namespace stratagem::calibrate {

struct Progress {
  std::size_t done = 0;
  std::size_t all = 0;
  Seconds left;      ///< estimated from what the others took
  std::string name;  ///< of the experiment that is next
};

/// What to measure, and where to write it.
struct Assignment {
  std::string file;
  Sweep sweep = Sweep::full;
  std::string only;  ///< experiments whose names begin so; "" for all
};

/// Measures one core of this machine for each rank, all ranks at once, and what they take to
/// communicate; writes the file, or adds to it what is missing. All ranks call it alike; rank 0
/// writes, and `tell` hears there of every experiment before it runs. A rank has one thread, which
/// computes or communicates: how much one slows down the other is not asked.
///
/// Throws InputError, on one rank and AnotherRankFailed on the others, for a file that cannot be
/// written, that is none of measurements, or one of another machine or number of ranks, and for
/// ranks that are not alike (ranks.hpp); CommunicationError for ranks that are lost. Returns how
/// many experiments were run; those that the file had are not run again.
std::size_t measure_cpu(const Assignment& assignment, kernels::Communicator& ranks,
                        const std::function<void(const Progress&)>& tell);

}  // namespace stratagem::calibrate

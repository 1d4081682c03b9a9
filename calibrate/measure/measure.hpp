// `calibrate measure`: times this machine's kernels, and writes what it found as it goes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "calibrate/fresh_check.hpp"
#include "calibrate/measure/cpu_experiments.hpp"
#include "calibrate/measure/scenario_experiments.hpp"
#include "kernels/ranks/communicator.hpp"

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
  std::string only;                             ///< experiments whose names begin so; "" for all
  std::vector<ScenarioKernels> scenarios = {};  ///< whose shapes are measured, too
  /// How many bytes operands are dealt out of, as where a small model is trained; else so many that
  /// none is in a cache.
  std::optional<Bytes> working_set = std::nullopt;
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

/// Which fresh shapes to measure.
struct CheckAssignment {
  std::string file;  ///< of the profile
  std::uint64_t seed = 1;
  int shapes = 8;  ///< of every line of kernels: fresh_experiments.hpp
  double limit = 0.15;
  std::optional<Bytes> working_set = std::nullopt;  ///< as the profile was measured with
};

/// Measures shapes that the profile was not fitted to, a core for each rank, all ranks at once, and
/// predicts them with cost::kernel_time, as the simulator does. All ranks call it alike; what they
/// return differs in nothing. Throws as measure_cpu does, and InputError for a profile that is not
/// of this processor or has no measured range.
FreshCheck check_cpu(const CheckAssignment& assignment, kernels::Communicator& ranks,
                     const std::function<void(const Progress&)>& tell);

}  // namespace stratagem::calibrate

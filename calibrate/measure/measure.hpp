// `calibrate measure`: times this machine's kernels, and writes what it found as it goes.
#pragma once

#include <functional>
#include <string>

#include "calibrate/measure/cpu_experiments.hpp"

namespace stratagem::calibrate {

struct Progress {
  std::size_t done = 0;
  std::size_t all = 0;
  Seconds left;      ///< estimated from what the others took
  std::string name;  ///< of the experiment that is next
};

/// Measures one core of this machine and writes `file`, or adds to it what is missing. `tell` hears
/// of every experiment before it runs. Throws InputError for a file that cannot be written, that is
/// none of measurements, or one of another machine. Returns how many experiments were run; those
/// that the file had are not run again.
std::size_t measure_cpu(const std::string& file, Sweep sweep,
                        const std::function<void(const Progress&)>& tell);

}  // namespace stratagem::calibrate

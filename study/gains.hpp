// What a run would gain from more of one thing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// An iteration of a run whose machine has twice as much of something.
struct Gain {
  std::string of;                         ///< Resource::name of study/what_if.hpp, or "gpus"
  std::optional<Seconds> iteration_time;  ///< none: then it is no plan, or does not fit
};

/// Of every resource that concerns time, and of twice the GPUs: as data ranks that share the same
/// batch. Each is simulated. Expects a run that is not refused, with Run::resolved. `threads`
/// threads simulate; the answer does not depend on their number.
std::vector<Gain> gains(const Run& run, int threads = 1);

}  // namespace stratagem::study

// Changes with which a run that is out of memory would fit, and what they cost.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "study/run.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {

/// Settings that differ from a run's, with which it fits.
struct Remedy {
  std::string change;  ///< in words of the scenario: `"recompute": "full"`
  Json settings;       ///< to be laid over the run: {"strategy": {"recompute": "full"}}
  Seconds iteration_time;
  Bytes used;          ///< of the fullest device
  bool tight = false;  ///< as Outcome::tight
};

/// The cheapest changes, at most `most`, by the iteration time that they lead to; every one was
/// simulated and fits (what a lower bound of memory rules out was not simulated). Tried are changes
/// of one setting: smaller micro-batches; recomputation; ZeRO; sequence parallelism; twice, four
/// and eight times the tensor- or pipeline-parallel ranks for fewer data-parallel ones; co-shard;
/// the optimizer's steps on the host, alone or with the parameters, and drives for what is there
/// already; swapped activations; a schedule with fewer micro-batches in flight. If too few of them
/// suffice, two and then three at once are tried: of six settings the value that takes the least
/// memory. Simulated values come before those that a bound of memory rules out. A run with a plan
/// of its own has no strategy to change: only its micro-batches. Nothing changes what is computed:
/// neither the global batch nor the precision, nor is a flush added to a schedule. `threads`
/// threads simulate; the answer does not depend on their number.
std::vector<Remedy> remedies(const Run& run, std::size_t most, int threads = 1);

}  // namespace stratagem::study

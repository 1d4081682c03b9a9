// How long a model takes to answer prompts token by token.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "study/run.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {

/// A forward pass of a run for some of the tokens of a sequence.
struct Pass {
  Run run;
  Simulated simulated;
};

/// One pass over the prompts (prefill) returns the first token of each answer. Each later token
/// takes a pass of its own (a decode step), which reads the keys and values of all tokens before.
struct Generation {
  Seconds time;
  Seconds prefill;      ///< of `time`
  Seconds first, last;  ///< decode steps; 0 if there are none
  /// What the kernels of all passes read and write, at the full bandwidth of a GPU's memory.
  Seconds memory_bound;
  /// Of the last decode step, mean of all GPUs: the share of communication beside which nothing is
  /// computed, and of time in which neither happens.
  double exposed_communication = 0;
  double idle = 0;
  int simulated = 0;       ///< decode steps that were simulated; the others are interpolated
  std::vector<Pass> ends;  ///< prefill, and the last decode step
};

/// The last `answer` tokens of each sample of a run without stages are generated. All samples
/// generate equally many tokens, and all caches have room for the whole sequence from the start. A
/// pass begins when the one before has ended: the host reads each token.
///
/// Where a decode step in the middle between two others takes the mean of their times, to a
/// picosecond for each of its tasks, those between are interpolated linearly. On one queue of
/// kernels, whose times are each linear in the tokens before, that is exact: the time of a step is
/// then convex. Collectives beside kernels (ZeRO 3) are not covered by that argument; a test
/// compares all steps. Throws InputError if the run has no forward pass with caches.
Generation generate(const Run& run, int answer, const SimulateOptions& options);

}  // namespace stratagem::study

// How long a model takes to answer prompts token by token.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "study/run.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {

/// A run for some of the tokens of a sequence.
struct TokenPass {
  Run run;
  Simulated simulated;
};

/// Prompts are processed in one pass, which returns the first token. Each later token takes a pass
/// of its own, which reads the keys and values of all tokens before it.
struct Generation {
  Seconds time;
  Seconds prompt;       ///< of `time`
  Seconds first, last;  ///< passes of single tokens; 0 if the prompt's pass returns the only one
  /// What the kernels of all passes read and write, at the full bandwidth of a GPU's memory.
  Seconds traffic;
  /// Shares of the last pass, mean of all GPUs: communication beside which nothing is computed, and
  /// neither, where a GPU waits for launches.
  double communicating = 0;
  double waiting = 0;
  int simulated = 0;            ///< passes of single tokens that were simulated, out of all
  std::vector<TokenPass> ends;  ///< the prompt's pass, and that of the last token
};

/// The last `answer` tokens of each sample of a run without stages are generated. All samples
/// answer at the same pace, and all caches have room for the whole sequence from the start. A pass
/// begins when the one before has ended: the host reads each token.
///
/// Where a pass in the middle between two others takes the mean of their times, to a picosecond for
/// each of its tasks, all between are taken to lie on that line and are not simulated. On one queue
/// of kernels, whose times are each linear in the tokens before, they do: the time of a pass is
/// then convex. Collectives beside kernels (ZeRO 3) are not covered by that; tests compare all
/// passes. Throws InputError if the run has no forward pass with caches.
Generation generate(const Run& run, int answer, const SimulateOptions& options);

}  // namespace stratagem::study

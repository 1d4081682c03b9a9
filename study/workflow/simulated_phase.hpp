// One phase of a workflow, simulated alone.
#pragma once

#include <optional>
#include <string>

#include "base/quantity.hpp"
#include "study/workflow/generation.hpp"
#include "study/workflow/model_states.hpp"
#include "study/workflow/workflow.hpp"

namespace stratagem::study {

/// What is reported of a phase. The first repeat takes the time of an iteration from a cold start,
/// each further one that of a steady iteration.
struct PhaseOutcome {
  std::string name;
  std::string run;
  std::string pool;
  int repeat = 1;
  int samples = 0;        ///< of one repeat
  int answer_tokens = 0;  ///< of a sample; 0: none are generated
  Seconds begin, time;
  Seconds weight_transfer;  ///< of `time`: until new weights are there that another phase trained
  Bytes used;               ///< of the GPU of its pool that needs most meanwhile, with all models
  std::optional<Generation> generation;
};

struct SimulatedPhase {
  const Phase* phase;
  PhaseOutcome outcome;
  ModelStates states;
  bool copies = false;  ///< it has a copy of the weights of its own while it runs
};

inline bool trains(const SimulatedPhase& one) {
  return cost::trains(one.phase->run->training.optimizer);
}

/// Throws InputError.
SimulatedPhase simulate_phase(const Phase& phase, const SimulateOptions& options);

}  // namespace stratagem::study

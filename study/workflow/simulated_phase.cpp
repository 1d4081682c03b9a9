// Simulates a run as often as its phase says, or a generation.
#include "study/workflow/simulated_phase.hpp"

#include <algorithm>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::study {
namespace {

/// The larger of what two passes use, device by device.
ModelStates states_of(const Generation& generation) {
  ModelStates states = states_of(generation.ends.front().run, generation.ends.front().simulated);
  const ModelStates last = states_of(generation.ends.back().run, generation.ends.back().simulated);
  for (std::size_t device = 0; device < states.used.size(); ++device)
    states.used[device] = std::max(states.used[device], last.used[device]);
  return states;
}

/// An error of a pass names keys that the user did not write: it is the phase's.
Generation generated(const Phase& phase, const SimulateOptions& options) {
  try {
    return generate(*phase.run, phase.answer_tokens, options);
  } catch (const InputError& error) {
    phase.json.at("answer_tokens")
        .fail("a run whose passes can have caches (" + error.path + ": expected " + error.expected +
                  ")",
              error.found);
  }
}

}  // namespace

SimulatedPhase simulate_phase(const Phase& phase, const SimulateOptions& options) {
  const Run& run = *phase.run;
  if (run.refused) phase.json.at("run").fail("a run that is not refused, see above");
  SimulatedPhase result{.phase = &phase,
                        .outcome = {.name = phase.name,
                                    .run = run.name,
                                    .pool = phase.pool,
                                    .repeat = phase.repeat,
                                    .samples = run.batch.global,
                                    .answer_tokens = phase.answer_tokens},
                        .states = {}};
  if (phase.answer_tokens == 0) {
    const Simulated simulated = simulate(run, options);
    const sim::Metrics& metrics = *simulated.outcome.metrics;
    result.outcome.time = metrics.makespan + (phase.repeat - 1) * metrics.iteration_time;
    result.states = states_of(run, simulated);
    return result;
  }
  Generation generation = generated(phase, options);
  result.outcome.time = phase.repeat * generation.time;
  result.states = states_of(generation);
  generation.ends.clear();
  result.outcome.generation = std::move(generation);
  return result;
}

}  // namespace stratagem::study

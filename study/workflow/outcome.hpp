// What a workflow takes: the time of its phases one after another, and the memory of each pool.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "study/workflow/pool_memory.hpp"
#include "study/workflow/simulated_phase.hpp"

namespace stratagem::study {

struct WorkflowOutcome {
  std::string name;
  std::optional<std::string> refused;  ///< why it cannot run; then there is nothing else
  int gpus = 0;                        ///< of all pools
  Seconds time;                        ///< from the begin of the first phase to the end of the last
  std::vector<PhaseOutcome> phases;
  std::vector<PoolMemory> pools;

  /// Does every pool's memory suffice?
  [[nodiscard]] bool fits() const;
  /// Samples of the generations, each of which a step answers once; 0 if there are none.
  [[nodiscard]] int answered() const;
};

/// Simulates each phase alone. Refused where a run is, and where add_weight_transfers refuses. What
/// phases on different pools do to each other over shared links is not modelled.
WorkflowOutcome simulate_workflow(const Workflow& workflow, const SimulateOptions& options);

}  // namespace stratagem::study

// What a workflow takes: the time of its phases one after another, and the memory of each pool.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "study/workflow/generation.hpp"
#include "study/workflow/workflow.hpp"

namespace stratagem::study {

/// A phase, simulated: its first iteration from a cold start, and for each repeat one more as they
/// follow each other.
struct PhaseOutcome {
  std::string name;
  std::string run;
  std::string pool;
  int repeat = 1;
  Seconds begin, time;
  Seconds weights;  ///< of `time`: until new weights are there that another phase has trained
  Bytes used;       ///< of the GPU of its pool that needs most meanwhile
  std::optional<Generation> generation;
};

/// The GPU of a pool that needs most, in the phase in which it does. All models that have a phase
/// on a pool keep their parameters, gradients and optimizer states there; all else is a phase's
/// own, and the allocator returns what it holds beyond that when the phase ends.
struct PoolMemory {
  std::string pool;
  int gpus = 0;
  int device = 0;
  std::string phase;
  std::map<std::string, Bytes> weights;  ///< by model: what stays from phase to phase
  Bytes caches;                          ///< of the phase
  Bytes beside;  ///< all else of the phase: activations, the allocator, context, communicators
  Bytes memory;  ///< of the GPU

  [[nodiscard]] Bytes used() const;
};

struct WorkflowOutcome {
  std::string name;
  std::optional<std::string> refused;  ///< why it cannot run; then there is nothing else
  int gpus = 0;                        ///< of all pools
  Seconds time;                        ///< from the begin of the first phase to the end of the last
  std::vector<PhaseOutcome> phases;
  std::vector<PoolMemory> pools;

  /// Does every pool's memory suffice?
  [[nodiscard]] bool fits() const;
};

/// Of a model that a phase trains, each phase that divides its parameters in another way on the
/// same pool has a copy of its own while it runs, and a pool that does not train it has a copy all
/// the time. New weights are brought before every phase of the first kind, and before the first one
/// on a pool of the second. Refused where a run is, where two phases train a model that divide it
/// differently, and where phases of one pool divide a model differently that nobody trains. What
/// phases on different pools do to each other over shared links is not modelled.
WorkflowOutcome simulate_workflow(const Workflow& workflow, const SimulateOptions& options);

}  // namespace stratagem::study

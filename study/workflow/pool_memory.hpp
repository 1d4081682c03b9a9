// What the GPUs of a pool hold while several models share them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "study/workflow/simulated_phase.hpp"

namespace stratagem::study {

/// The GPU of a pool that needs most, in the phase in which it does. All models that have a phase
/// on a pool keep their parameters, gradients and optimizer states there; all else is a phase's
/// own, and the allocator is taken to return cached blocks when a phase ends.
struct PoolMemory {
  std::string pool;
  int gpus = 0;
  int device = 0;
  std::string phase;
  std::map<std::string, Bytes> states;  ///< by model: what stays from phase to phase
  Bytes copy;                           ///< of the weights that the phase divides differently
  Bytes caches;                         ///< of keys and values
  Bytes other;   ///< activations, the allocator's free blocks, context, communicators
  Bytes memory;  ///< of the GPU

  [[nodiscard]] Bytes used() const;
  [[nodiscard]] bool fits() const { return used() <= memory; }
};

/// One of each pool, by name. Notes in each phase what the fullest GPU of its pool needs.
std::vector<PoolMemory> memory_of_pools(std::vector<SimulatedPhase>& phases);

}  // namespace stratagem::study

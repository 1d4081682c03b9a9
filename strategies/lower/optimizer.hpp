// Optimizer steps of one host, and the buffers that live from iteration to iteration.
#pragma once

#include <string>
#include <vector>

#include "cost/stack.hpp"
#include "strategies/lower/parameters.hpp"

namespace stratagem::strategies {

/// One step for each parameter that `segment` is the first on its host to read, as the stack
/// performs it, on the host where the plan says so.
struct StepBlock {
  int segment = 0;
  Bytes bytes;  ///< of the parameters, or of their shards
  Block block;
  std::string key;  ///< equal for equal blocks
};
std::vector<StepBlock> step_blocks(const Plan& plan, const cost::Stack& stack, const Stages& stages,
                                   const Parameters& parameters, int host);

/// Parameters, gradients and optimizer states of a host, per device; `versions` of the parameters
/// are kept at once.
std::vector<Resident> resident_buffers(const Plan& plan, const cost::Stack& stack,
                                       const Parameters& parameters, int host, int versions);

}  // namespace stratagem::strategies

// Optimizer steps of one stage, and the buffers that live from iteration to iteration.
#pragma once

#include <string>
#include <vector>

#include "cost/stack.hpp"
#include "strategies/lower/blocks.hpp"
#include "strategies/lower/stages.hpp"

namespace stratagem::strategies {

/// One step for each parameter that `segment` is the first of its stage to read, as the stack
/// performs it.
struct StepBlock {
  int segment = 0;
  Block block;
  std::string key;  ///< equal for equal blocks
};
std::vector<StepBlock> step_blocks(const Plan& plan, const cost::Stack& stack, const Stages& stages,
                                   const Blocks& blocks, int stage);

/// Parameters, gradients and optimizer states of a stage, per device.
std::vector<Resident> resident_buffers(const Plan& plan, const cost::Stack& stack,
                                       const Stages& stages, const Blocks& blocks, int stage);

}  // namespace stratagem::strategies

// What the devices of one stage run in one iteration: cells, transfers, gradient reductions,
// optimizer steps.
#pragma once

#include <vector>

#include "strategies/lower/blocks.hpp"
#include "strategies/lower/gradients.hpp"
#include "strategies/lower/stages.hpp"

namespace stratagem::strategies {

/// What a sequence is built from.
struct SequenceContext {
  const Plan& plan;
  const cost::Stack& stack;
  const Stages& stages;
  Groups& groups;
  Blocks& blocks;
};

/// The calls of one stage that runs its cells in the given order, with waits between calls on
/// different streams. A cell receives what comes from the stage before, runs its segments, and
/// sends on. Gradients that are partial sums are reduced as the plan says, then those of parameters
/// that several stages share, then every parameter takes its step.
Sequence build_sequence(const SequenceContext& context, int stage, const std::vector<Cell>& cells);

}  // namespace stratagem::strategies

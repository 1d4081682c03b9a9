// What the devices of one host run in one round: cells, transfers, gradient reductions, optimizer
// steps.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "strategies/lower/blocks.hpp"
#include "strategies/lower/cells.hpp"
#include "strategies/lower/crossing.hpp"
#include "strategies/lower/parameters.hpp"
#include "strategies/lower/stages.hpp"
#include "strategies/lower/versions.hpp"

namespace stratagem::strategies {

/// What a sequence is built from.
struct SequenceContext {
  const Plan& plan;
  const cost::Stack& stack;
  const Stages& stages;
  const CellOrder& order;
  const std::vector<Versions>& versions;
  const Parameters& parameters;
  Groups& groups;
  BlockTable& table;
  const std::vector<std::unique_ptr<Blocks>>& slices;  ///< of the tokens, one if they are whole
  std::map<std::array<int, 3>, CrossingBlocks>& crossings;  ///< by tensor, copy and slice
};

/// The calls of one host that runs its cells in the given order, with waits between calls on
/// different streams. A cell receives what comes from other stages, runs its segments, and sends on.
/// Messages are received in the order in which their sender's cells make them, so that both sides of
/// a way agree. Gradients that are partial sums are reduced as the plan says, then those of
/// parameters that several grids hold, then every parameter takes its step.
Sequence build_sequence(const SequenceContext& context, int host);

}  // namespace stratagem::strategies

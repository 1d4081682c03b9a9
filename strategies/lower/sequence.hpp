// What the devices of one host run in one round: cells, transfers, gradient reductions, optimizer
// steps.
#pragma once

#include "strategies/lower/sequence_draft.hpp"

namespace stratagem::strategies {

/// The calls of one host that runs its cells in the given order, with waits between calls on
/// different streams. A cell receives what comes from other stages, runs its segments, and sends on.
/// Messages are received in the order in which their sender's cells make them, so that both sides of
/// a way agree. Gradients that are partial sums are reduced as the plan says, then those of
/// parameters that several grids hold, then every parameter takes its step.
Sequence build_sequence(const SequenceContext& context, int host);

}  // namespace stratagem::strategies

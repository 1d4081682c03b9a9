// The sequence of one device class for one round: cells, transfers, gradient reductions, optimizer
// steps.
#pragma once

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// The calls of one device class, which runs its cells in the given order, with waits between calls
/// on different streams. A cell receives from other stages, runs its segments, and sends on.
/// Messages are received in the order in which their sender's cells produce them, so both sides
/// agree. Gradients that are partial sums are reduced as the plan says, then those of parameters
/// that several grids hold; then every parameter takes its step.
program::Sequence build_sequence(const SequenceContext& context, int device_class);

}  // namespace stratagem::lowering

// What a framework keeps of the outputs of forward passes that are over.
#pragma once

#include <vector>

#include "strategies/lower/sequence_draft.hpp"

namespace stratagem::strategies {

/// The buffers of a stack's kept_outputs (cost::KeptOutputs) on the host of a sequence that has all its
/// calls, as large as what its forward passes write; none where no such operator runs.
std::vector<Resident> kept_outputs(const SequenceContext& context, const SequenceDraft& draft);

}  // namespace stratagem::strategies

// Buffers that a framework keeps for what it gathers between operators.
#pragma once

#include <vector>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// The buffers of a stack's rule (cost::GatherBuffers) on a device class whose sequence has all its
/// calls; none if it gathers nothing.
std::vector<program::Resident> gather_buffers(const SequenceContext& context,
                                              const SequenceDraft& draft);

}  // namespace stratagem::lowering

// Outputs of finished forward passes, and buffers for operators, that a framework keeps.
#pragma once

#include <vector>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// The buffers of a stack's rules of kept outputs (cost::KeptOutputs) on a device class whose
/// sequence has all its calls. They are as large as what its forward passes write. None if no such
/// operator runs.
std::vector<program::Resident> kept_outputs(const SequenceContext& context,
                                            const SequenceDraft& draft);

/// The buffers that a framework keeps for kinds of operators (cost::OperatorKernels), likewise.
/// Each is as large as the largest first result of its kind.
std::vector<program::Resident> kept_buffers(const SequenceContext& context,
                                            const SequenceDraft& draft);

}  // namespace stratagem::lowering

// Buffers that a framework keeps: outputs of finished passes, buffers of operators, and what stages
// received last.
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

/// What each of a device's pipeline stages has received last, and its gradient, where the stack
/// says that they live until the next comes (cost::Lifetime). Counted all the time, though the
/// stage that runs has its own: an upper estimate, by two tensors.
std::vector<program::Resident> kept_messages(const SequenceContext& context,
                                             const SequenceDraft& draft);

}  // namespace stratagem::lowering

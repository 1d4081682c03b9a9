// The keys and values that stay on devices from pass to pass.
#pragma once

#include <vector>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// The caches that the attentions of a device class read and write, as each of them divides the
/// tokens' keys and values: one for every micro-batch that the class processes.
std::vector<program::Resident> caches(const SequenceContext& context, const SequenceDraft& draft);

}  // namespace stratagem::lowering

// The keys and values that stay on devices from pass to pass.
#pragma once

#include <vector>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// The KV caches of a device class: one for each attention and micro-batch, divided as the
/// attention divides keys and values.
std::vector<program::Resident> caches(const SequenceContext& context, const SequenceDraft& draft);

}  // namespace stratagem::lowering

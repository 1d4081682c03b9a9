// The cells of all device classes with their blocks, dependencies and what they surely hold.
#pragma once

#include "lowering/draft/sequence_draft.hpp"
#include "lowering/outline.hpp"

namespace stratagem::lowering {

/// All of an outline but its program.
Outline outlined(const SequenceContext& context);

}  // namespace stratagem::lowering

// Lending as in BPipe: which stages hold the activations that others have no room for.
#pragma once

#include "lowering/draft/sequence_draft.hpp"
#include "lowering/neighbours.hpp"

namespace stratagem::lowering {

/// The plan's rules with stages in place of peers. A stage lends to the one that the fastest links
/// lead to; of equally fast ones to the one with the most idle memory, then to the last. What it
/// has no room for goes to the next. Idle memory is what devices have, less what lives on them all
/// the time, less the most that they hold of activations in the order of cells, their own (though
/// they lend them) and those of others. Links count between devices that stand for each other in
/// the stages' copies, the slowest of them. Cells are lent to even out what stages hold: no device
/// takes so many of them that it holds more than the fullest device would without lending, and
/// cells for which there is no such device stay where they are.
/// Before: blocks are lowered, cells ordered, parameters held. After: no rule says `peers`.
/// Throws InputError for a stage with no other one on an equal grid, and for a segment for which
/// no stage has room. Micro-batches are whole: refuse_swaps refuses slices of tokens.
/// Sources: Zhou et al., MPress, HPCA 2023; Kim et al., BPipe, ICML 2023.
strategies::Residency with_peers(const SequenceContext& context, const Neighbours& neighbours);

}  // namespace stratagem::lowering

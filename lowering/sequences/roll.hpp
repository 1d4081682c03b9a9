// Rolls a sequence: what repeats from micro-batch to micro-batch becomes a loop.
#pragma once

#include "program/program.hpp"

namespace stratagem::lowering {

/// Before: a sequence without loops. After: the same calls by number (program::unrolled gives them
/// back), where what repeats is stored once. In every turn of a loop are the same blocks for the
/// same segments, grids, lags and versions; waits are for calls as far before, launches in the same
/// order, and all micro-batches later by one step. From the front on, each loop is the one that
/// saves most calls among those that begin there: not always the fewest calls in all.
program::Sequence roll(program::Sequence sequence);

}  // namespace stratagem::lowering

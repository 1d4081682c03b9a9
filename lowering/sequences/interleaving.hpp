// Two cells that run together: in which order their tasks are launched.
#pragma once

#include <array>
#include <vector>

#include "lowering/draft/sequence_draft.hpp"

namespace stratagem::lowering {

/// Do two cells that run together take turns? Not on irregular stages, where devices of a
/// communicator may run blocks of different tasks and would not agree on an order of their
/// collectives; nor where segments leave their activations with another stage, which takes them in
/// cell by cell; nor if both are of one micro-batch, with buffers in common.
bool alternate(const SequenceContext& context, const placement::Cell& one,
               const placement::Cell& other);

/// The calls of a cell, ascending: a chain, whose tasks keep their order.
using CallChain = std::vector<int>;

/// The order of launches of two chains, which may wait for calls before both and for each other's.
/// Where the next computation of one needs an all-to-all of its own cell that was launched last,
/// the other goes on, until it comes to such a place itself. So the all-to-alls of each run beside
/// the computations of the other; other collectives are waited for where they stand. No durations
/// are known here: whoever goes on is taken to compute for as long as those all-to-alls take. The
/// chain with fewer computations before its first such place begins. The order depends on the
/// cells' own tasks only (not on gathers of weights and copies ahead of them, unless a task waits
/// for one that is not launched), so all devices of a communicator have the same.
std::vector<program::Launch> interleaved(const SequenceDraft& draft,
                                         const std::array<CallChain, 2>& chains);

}  // namespace stratagem::lowering

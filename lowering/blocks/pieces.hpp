// Cuts products and the collectives beside them into pieces of tokens, so that one piece is
// computed while another is on its way.
#pragma once

#include <functional>
#include <map>

#include "lowering/blocks/rewriting.hpp"
#include "lowering/stack/pieces.hpp"
#include "program/program.hpp"

namespace stratagem::lowering {

/// Cuts pairs of neighbouring tasks, P a product of which `by_tokens` holds:
///   a gather C and P, which reads what C gathers, by ring exchange among n ranks:
///     P1 on the own share, beside C1; Pi waits for C(i-1); n - 1 exchanges of a share
///   the same with the own share first: P1 beside C, then P2, and P3 where n > 2, which wait for C
///   P and a reduce-scatter C of what P writes, in n pieces: Ci waits for Pi
/// `cuts` names C. It stays whole where it has no such neighbour. The last pieces of both have what
/// the whole tasks did to values; earlier ones count for time alone.
/// Before: waits and uses are noted; buffers are not yet allocated and freed.
Moved cut_in_pieces(program::Block& block, const std::map<int, Cut>& cuts,
                    const std::function<bool(int task)>& by_tokens);

}  // namespace stratagem::lowering

// Collectives whose times were measured: between what was measured, straight lines.
#pragma once

#include "base/quantity.hpp"
#include "cost/profile.hpp"
#include "cost/ring.hpp"

namespace stratagem::cost {

/// The time of a collective of `payload` over `ranks` ranks of one server, alone:
///   in the payload  on the line through the measured payloads on either side; below the smallest
///                   its time; above the largest on the line of the largest two or, where that does
///                   not rise, at the largest's bytes in a second
///   in the ranks    on the line through the measured numbers of ranks on either side
/// Libraries change their algorithms with size and ranks: lines follow them where they were
/// measured, formulas would need to know them. Source of the idea: Clauss et al., Single Node
/// On-Line Simulation of MPI Applications with SMPI, IPDPS 2011. Error: that of the times,
/// cross-validated.
/// Throws InputError for more ranks than were measured, which nothing can be said about.
Seconds measured_time(const CollectiveTimes& times, int ranks, Bytes payload);

/// Does all that the prediction interpolates between lie on both sides of it: numbers of ranks, and
/// for each of the two that stand next to it, payloads?
bool within_measured(const CollectiveTimes& times, int ranks, Bytes payload);

/// The same as a route: the time at payload 0 of the line at this payload as latency, but no less
/// than nothing and no more than all, and the rest as a limit. It loads no links: what ranks share
/// was at work when they were measured.
Route measured_route(const CollectiveTimes& times, int ranks, Bytes payload);

}  // namespace stratagem::cost

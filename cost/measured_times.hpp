// Collectives with measured times, and linear interpolation between them.
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

/// Is the prediction interpolated, not extrapolated? It is if measurements lie on both sides: of
/// the number of ranks, and, for each of the two nearest numbers of ranks, of the payload.
bool within_measured(const CollectiveTimes& times, int ranks, Bytes payload);

/// The same time as a route. Its latency is where the line around this payload meets payload 0, at
/// least 0 and at most the whole time; the rest is a limit of bytes per second. It loads no links:
/// the ranks already shared them when they were measured.
Route measured_route(const CollectiveTimes& times, int ranks, Bytes payload);

}  // namespace stratagem::cost

// All-reduces that were measured between the servers of a cluster.
#pragma once

#include <vector>

#include "base/json_reader.hpp"
#include "topology/node_design.hpp"

namespace stratagem::topology {

/// A list of objects, see docs/reference/scenario.md, in ascending numbers of servers. `ports` is
/// what all adapters of a server carry in one direction. Throws InputError for fewer than two
/// servers, a number that is not above the one before it, a payload that is not above 0, and no
/// source. So it does for a rate that is not above 0 or above twice the ports: in-network
/// reductions reach twice.
std::vector<MeasuredReduction> read_reductions(const JsonReader& reader, BytesPerSecond ports);

/// What an all-reduce over so many servers may be taken to reach: as measured; between two
/// measurements the bus bandwidth is linear in the logarithm of the number of servers, and the
/// payload that of fewer servers; beyond them both are those of the nearest one. Wants at least one
/// measurement.
MeasuredReduction reduction_over(const std::vector<MeasuredReduction>& measured, int servers);

}  // namespace stratagem::topology

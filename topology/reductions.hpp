// All-reduces that were measured between the servers of a cluster.
#pragma once

#include <vector>

#include "base/json_reader.hpp"
#include "topology/node_design.hpp"

namespace stratagem::topology {

/// A list of objects, see docs/reference/scenario.md, in ascending numbers of servers. Throws
/// InputError for fewer than two servers, a number that is not above the one before it, and a
/// payload or rate that is not above 0.
std::vector<MeasuredReduction> read_reductions(const JsonReader& reader);

}  // namespace stratagem::topology

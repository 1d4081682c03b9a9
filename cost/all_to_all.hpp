// All-to-alls whose ranks send each other different amounts.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "cost/ring.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost {

/// The bytes that each rank sends to each other: row i is rank i's, in the order of the group. The
/// part that a rank keeps does not move.
using Parts = std::vector<std::vector<Bytes>>;

/// Loads and the payload that they are per byte of.
struct UnequalLoads {
  std::vector<LinkLoad> loads;
  Bytes payload;
};

/// Each part takes the shortest paths from rank to rank, all at once, as in an equal all-to-all
/// (ring.hpp); with equal parts it is one. The payload is the largest sum of a row: the most bytes
/// that any rank has. Throws InputError for a table that is not n rows of n parts of 0 bytes or
/// more.
UnequalLoads all_to_all_loads(const topology::Cluster& cluster, const std::vector<int>& ranks,
                              const Parts& parts);

}  // namespace stratagem::cost

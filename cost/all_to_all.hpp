// All-to-alls whose ranks send each other different amounts.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "cost/ring.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost {

/// What every rank has for every other: row i is what rank i sends, in the order of the group. What a
/// rank has for itself moves nowhere.
using Parts = std::vector<std::vector<Bytes>>;

/// Loads and the payload that they are per byte of.
struct UnequalLoads {
  std::vector<LinkLoad> loads;
  Bytes payload;
};

/// Every part takes the shortest paths from rank to rank, all at once, as those of an equal all-to-all
/// do (ring.hpp), which this is if all parts are equal. The payload is the most that any rank has, its
/// row's sum. Throws InputError for a table that is not of n rows of n parts of 0 bytes or more.
UnequalLoads all_to_all_loads(const topology::Cluster& cluster, const std::vector<int>& ranks,
                              const Parts& parts);

}  // namespace stratagem::cost

// Which links the groups of a program use.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cost/collectives.hpp"
#include "program/program.hpp"

namespace stratagem::report {

/// What all communicators of one group (Collective::group) do in one iteration.
struct GroupLinks {
  std::string what;        ///< its streams and collectives: "communication: 96 all_reduce"
  std::vector<int> ranks;  ///< of the first communicator
  int communicators = 0;
  Bytes payload;                               ///< of all collectives of one communicator
  std::map<topology::Direction, Bytes> bytes;  ///< on every direction of a link that they use
  /// The direction that takes longest with nothing but this group on it, how long, and how many of
  /// the communicators are on it.
  topology::Direction slowest;
  Seconds slowest_time;
  int on_slowest = 0;
};

/// By group, those that no task names left out. Rank r of the program is GPU r of the cluster.
std::vector<GroupLinks> group_links(const program::Program& program,
                                    cost::Collectives& collectives);

}  // namespace stratagem::report

// How far a prediction can be trusted: the weakest provenance among the constants that it used.
#pragma once

#include <string>
#include <vector>

#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "strategies/program.hpp"
#include "topology/node_design.hpp"

namespace stratagem::search {

/// The constants of the weakest provenance, in the order of their files.
struct Weakest {
  cost::Provenance provenance = cost::Provenance::measured;
  std::vector<std::string> profile;  ///< JSON pointers into the profile: "/streaming/dropout"
  std::vector<std::string> stack;    ///< into the stack: "/slowdown"
  std::vector<std::string> cluster;  ///< into the run's cluster: "/drives", no other
};

/// A constant is used if a kernel or collective of the program is of its kind; the network's count
/// as used if some group of GPUs spans two nodes of `gpus_per_node`, and the slow-down of kernels
/// beside collectives if there is one that is not on their stream.
Weakest weakest_provenance(const cost::Profile& profile, const cost::Stack& stack,
                           const strategies::Program& program, int gpus_per_node);

/// Counts the figures of drives, too, where a program reads or writes them. What is from memory, or of a
/// user who says no more, is as good as assumed.
void include_drives(Weakest& weakest, const topology::Drives& drives,
                    const strategies::Program& program);

}  // namespace stratagem::search

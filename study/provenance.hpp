// How far a prediction can be trusted: the weakest provenance among the constants that it used.
#pragma once

#include <string>
#include <vector>

#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "program/program.hpp"
#include "topology/node_design.hpp"

namespace stratagem::study {

/// The constants of the weakest provenance, in the order of their files.
struct Weakest {
  cost::Provenance provenance = cost::Provenance::measured;
  std::vector<std::string> profile;  ///< JSON pointers into the profile: "/streaming/dropout"
  std::vector<std::string> stack;    ///< into the stack: "/slowdown"
  std::vector<std::string> cluster;  ///< into the run's cluster: "/drives", no other
};

/// A constant counts as used if the program has a kernel or collective of its kind. Constants of
/// the network count if a group of GPUs spans two nodes of `gpus_per_node`. The slow-down of
/// kernels beside collectives counts if a collective runs on another stream than theirs.
Weakest weakest_provenance(const cost::Profile& profile, const cost::Stack& stack,
                           const program::Program& program, int gpus_per_node);

/// Also counts the rates of drives, if a program reads or writes them. Figures from memory, and a
/// user's without a provenance, count as assumed.
void include_drives(Weakest& weakest, const topology::Drives& drives,
                    const program::Program& program);

}  // namespace stratagem::study

// The servers that we know by name.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace stratagem::topology {

/// A file of presets/ defines a function that returns it, and presets/all.cpp names that function.
struct Preset {
  std::string name;     ///< "dgx-2h"
  std::string summary;  ///< one line for --help
  Cluster (*build)(int nodes);
};

/// All presets, in the order in which --help lists them.
const std::vector<Preset>& presets();

/// A table of the cluster for people: what stands in a node, every distinct link with count,
/// bandwidth and latency, the NVLink bandwidth of a GPU, the adapters nearest to each GPU, and the
/// network per node.
std::string describe(const Cluster&);

}  // namespace stratagem::topology

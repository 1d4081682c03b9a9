// Clusters and ranks that tests of collectives ask about.
#pragma once

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "topology/presets.hpp"

namespace stratagem::cost {

inline topology::Cluster preset(const std::string& name, int nodes) {
  for (const topology::Preset& entry : topology::presets()) {
    if (entry.name == name) return entry.build(nodes);
  }
  throw std::runtime_error("no such preset");
}

/// 0 to n - 1.
inline std::vector<int> first(int n) {
  std::vector<int> ranks(n);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace stratagem::cost

// The machines whose graphs and predictions NCCL's own code was asked for.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "topology/presets.hpp"

namespace stratagem {

inline topology::Cluster preset_named(const std::string& name, int nodes) {
  return std::ranges::find(topology::presets(), name, &topology::Preset::name)->build(nodes);
}

/// One entry of tests/cost/data/nccl_graphs.json: the first GPUs of each of some servers.
struct SolvedMachine {
  JsonReader solved;
  std::string name;
  int nodes = 1;
  int gpus = 1;  ///< of each node

  [[nodiscard]] topology::Cluster cluster() const { return preset_named(name, nodes); }
  [[nodiscard]] std::string text() const {
    return name + ", " + std::to_string(nodes) + " nodes of " + std::to_string(gpus) + " GPUs";
  }
  [[nodiscard]] std::vector<int> ranks() const {
    const int stride = cluster().gpus_per_node();
    std::vector<int> ranks;
    for (int node = 0; node < nodes; ++node) {
      for (int g = 0; g < gpus; ++g) ranks.push_back(node * stride + g);
    }
    return ranks;
  }
};

inline std::vector<SolvedMachine> solved_machines() {
  std::vector<SolvedMachine> machines;
  const JsonReader file = JsonReader::from_file("tests/cost/data/nccl_graphs.json");
  for (const JsonReader& solved : file.at("graphs").elements()) {
    machines.push_back({.solved = solved,
                        .name = solved.at("preset").text(),
                        .nodes = static_cast<int>(solved.at("nodes").number()),
                        .gpus = static_cast<int>(solved.at("gpus_per_node").number())});
  }
  return machines;
}

inline std::vector<int> first_gpus(int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace stratagem

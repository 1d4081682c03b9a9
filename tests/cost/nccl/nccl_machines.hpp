// The machines whose graphs and predictions NCCL's own code was asked for.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "topology/presets.hpp"

namespace stratagem {

/// Servers of Blackwell GPUs that are no presets: 18 cables of 50 GB/s from each GPU to two
/// switches and, with several servers, an adapter of 50 GB/s beside each GPU.
inline topology::Cluster blackwell(int gpus, int nodes) {
  using topology::LinkKind;
  using topology::VertexKind;
  topology::NodeDesign design{.name = "Blackwell",
                              .gpu = "b200",
                              .vertices = {},
                              .links = {},
                              .compute_capability = 100,
                              .processor = topology::Processor::intel_emerald_rapids};
  const std::array switches{design.add(VertexKind::nv_switch, "s0"),
                            design.add(VertexKind::nv_switch, "s1")};
  const auto cpu = design.add(VertexKind::cpu, "cpu");
  for (int g = 0; g < gpus; ++g) {
    const auto gpu = design.add(VertexKind::gpu, "gpu" + std::to_string(g));
    const auto pcie = design.add(VertexKind::pcie_switch, "pcie" + std::to_string(g));
    for (const auto nv_switch : switches)
      design.join(gpu, nv_switch, LinkKind::nvlink, 9, 50_GBps, 25_ns);
    design.join(gpu, pcie, LinkKind::pcie, 1, 63_GBps, 150_ns);
    design.join(pcie, cpu, LinkKind::pcie, 1, 63_GBps, 150_ns);
    if (nodes == 1) continue;
    const auto nic = design.add(VertexKind::nic, "nic" + std::to_string(g));
    design.join(nic, pcie, LinkKind::pcie, 1, 63_GBps, 150_ns);
  }
  return {design, nodes, 50_GBps, 0.5_us};
}

inline topology::Cluster preset_named(const std::string& name, int nodes) {
  return std::ranges::find(topology::presets(), name, &topology::Preset::name)->build(nodes);
}

/// One entry of tests/cost/data/nccl_graphs.json: the first GPUs of each of some servers.
struct SolvedMachine {
  JsonReader solved;
  std::string name;
  int nodes = 1;
  int gpus = 1;  ///< of each node

  [[nodiscard]] topology::Cluster cluster() const {
    if (name == "hgx-b200") return blackwell(8, nodes);
    return name == "nvl72" ? blackwell(72, nodes) : preset_named(name, nodes);
  }
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

// What several presets share: rates and latencies with their sources, and rows of vertices.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "topology/cluster.hpp"

namespace stratagem::topology::parts {

/// Bandwidths are datasheet rates of one cable in one direction; the usable share is the profile's
/// matter. V100, A100, H100 and H200 alike: 25 GB/s; Blackwell's: 50 GB/s (mleng accelerator
/// tables, stas00/ml-engineering 744d01e).
inline constexpr BytesPerSecond nvlink = 25_GBps;
inline constexpr BytesPerSecond nvlink_5 = 50_GBps;

/// 16 lanes of 8, 16, 32 GT/s with 128b/130b coding, rounded: PCI-SIG's rates. Of 64 GT/s in flits
/// of 256 bytes, 242 of which are packets: from memory.
inline constexpr BytesPerSecond pcie_3_x16 = 15.75_GBps;
inline constexpr BytesPerSecond pcie_4_x16 = 31.5_GBps;
inline constexpr BytesPerSecond pcie_5_x16 = 63_GBps;
inline constexpr BytesPerSecond pcie_6_x16 = 121_GBps;

/// Latencies of wires and switches alone; what software adds per step stands in the profile.
/// NVLink: SimAI's default (gen_Topo_Template.py, aliyun/SimAI cef83f9). PCIe and socket links:
/// assumed, no source. Of the network: network_speed.cpp; a message between two nodes crosses two
/// ports.
inline constexpr Seconds nvlink_latency = 25_ns;
inline constexpr Seconds pcie_latency = 150_ns;
inline constexpr Seconds socket_latency = 100_ns;

/// What a server comes with where nobody describes the fabric: one switch that never blocks.
inline FabricDesign one_switch(const std::string& speed) {
  return {.kind = FabricKind::single_switch, .speed = network_speed(speed)};
}

/// The NVLinks of the hybrid cube mesh of eight V100 SXM2: six of each GPU, to four others.
void join_cube_mesh(NodeDesign& design, const std::vector<VertexId>& gpus);

/// So many NVLinks from each GPU to each switch.
inline void join_to_switches(NodeDesign& design, const std::vector<VertexId>& gpus,
                             const std::vector<VertexId>& switches, int links,
                             BytesPerSecond rate) {
  for (const VertexId gpu : gpus) {
    for (const VertexId end : switches)
      design.join(gpu, end, LinkKind::nvlink, links, rate, nvlink_latency);
  }
}

/// Joins two vertices by one PCIe link.
inline auto pcie_of(NodeDesign& design, BytesPerSecond rate) {
  return [&design, rate](VertexId a, VertexId b) {
    design.join(a, b, LinkKind::pcie, 1, rate, pcie_latency);
  };
}

/// `count` vertices of a kind, named stem0, stem1, ...
inline std::vector<VertexId> add_row(NodeDesign& design, VertexKind kind, const std::string& stem,
                                     int count) {
  std::vector<VertexId> row;
  row.reserve(count);
  for (int i = 0; i < count; ++i) row.push_back(design.add(kind, stem + std::to_string(i)));
  return row;
}

/// An adapter for each GPU, and a PCIe switch to which both are joined by PCIe 6.0.
inline void add_connectx_8(NodeDesign& design, const std::vector<VertexId>& gpus,
                           const std::vector<VertexId>& switches) {
  const auto nics = add_row(design, VertexKind::nic, "nic", static_cast<int>(gpus.size()));
  const auto pcie = pcie_of(design, pcie_6_x16);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    pcie(gpus[i], switches[i]);
    pcie(nics[i], switches[i]);
  }
}

}  // namespace stratagem::topology::parts

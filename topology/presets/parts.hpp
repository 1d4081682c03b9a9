// What several presets share: rates and latencies with their sources, and rows of vertices.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "topology/cluster.hpp"

namespace stratagem::topology::parts {

/// Bandwidths are datasheet rates of one cable in one direction; the usable share is the profile's
/// matter. V100, A100 and H100 alike: 25 GB/s (mleng accelerator tables, stas00/ml-engineering
/// 744d01e).
inline constexpr BytesPerSecond nvlink = 25_GBps;

/// 16 lanes of 8, 16, 32 GT/s with 128b/130b coding, rounded: PCI-SIG's rates.
inline constexpr BytesPerSecond pcie_3_x16 = 15.75_GBps;
inline constexpr BytesPerSecond pcie_4_x16 = 31.5_GBps;
inline constexpr BytesPerSecond pcie_5_x16 = 63_GBps;

/// InfiniBand signalling rates of 100, 200 and 400 Gb/s (mleng).
inline constexpr BytesPerSecond edr_port = 12.5_GBps;
inline constexpr BytesPerSecond hdr_port = 25_GBps;
inline constexpr BytesPerSecond ndr_port = 50_GBps;

/// Latencies of wires and switches alone; what software adds per step stands in the profile.
/// NVLink: SimAI's default (gen_Topo_Template.py, aliyun/SimAI cef83f9). Ports: EDR and HDR from
/// mleng, NDR from SimAI's default; a message between two nodes crosses two of them.
/// PCIe and socket links: assumed, no source.
inline constexpr Seconds nvlink_latency = 25_ns;
inline constexpr Seconds pcie_latency = 150_ns;
inline constexpr Seconds socket_latency = 100_ns;
inline constexpr Seconds edr_latency = 0.5_us;
inline constexpr Seconds hdr_latency = 0.6_us;
inline constexpr Seconds ndr_latency = 0.5_us;

/// `count` vertices of a kind, named stem0, stem1, ...
inline std::vector<VertexId> add_row(NodeDesign& design, VertexKind kind, const std::string& stem,
                                     int count) {
  std::vector<VertexId> row;
  row.reserve(count);
  for (int i = 0; i < count; ++i) row.push_back(design.add(kind, stem + std::to_string(i)));
  return row;
}

}  // namespace stratagem::topology::parts

// HGX B200: eight B200 on two NVSwitches.
#include <cstddef>
#include <utility>

#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {
namespace {

/// - NVLinks: 18 of 50 GB/s per GPU (mleng accelerator tables); nine to each of two switches, from
///   memory (hardware.json). 8 GPUs x 18 x 50 GB/s are the 14.4 TB/s of the datasheet, which counts
///   both directions.
/// - PCIe: GPUs (2i, 2i+1) with adapters (2i, 2i+1), all PIX to each other, two such groups per
///   socket, read in `nvidia-smi topo -m` of one server (the-dsvolk.github.io, B200-explorer; its
///   second socket has more adapters than it shows). Drawn as one switch with one uplink. 5.0 x16,
///   datasheet.
/// - Adapters: 8 of 400 Gb/s (mleng).
/// - Sockets: Xeon 8570 from memory; four UPI links of 24 lanes at 20 GT/s, 60 GB/s each, assumed.
Cluster hgx_b200_cluster(int nodes) {
  constexpr BytesPerSecond upi = 60_GBps;

  NodeDesign design{.name = "HGX B200",
                    .gpu = "b200-sxm",
                    .vertices = {},
                    .links = {},
                    .compute_capability = 100,
                    .processor = Processor::intel_emerald_rapids};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 8);
  const auto nv_switches = parts::add_row(design, VertexKind::nv_switch, "nvswitch", 2);
  const auto switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", 4);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 8);

  parts::join_to_switches(design, gpus, nv_switches, 9, parts::nvlink_5);
  const auto pcie = parts::pcie_of(design, parts::pcie_5_x16);
  for (std::size_t i = 0; i < 8; ++i) {
    pcie(gpus[i], switches[i / 2]);
    pcie(nics[i], switches[i / 2]);
  }
  for (std::size_t i = 0; i < 4; ++i) pcie(switches[i], cpus[i / 2]);
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 4, upi, parts::socket_latency);
  return {std::move(design), nodes, parts::one_switch("NDR")};
}

}  // namespace

Preset hgx_b200() {
  return {"hgx-b200", "8 B200, 2 NVSwitches, 8 NDR adapters", &hgx_b200_cluster};
}

}  // namespace stratagem::topology

// HGX B300: eight B300 on two NVSwitches, with an adapter for each on the same board.
#include <cstddef>
#include <utility>

#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {
namespace {

/// - NVLinks: as those of HGX B200 (mleng: 14.4 TB/s on either board, both directions counted).
/// - Adapters: eight ConnectX-8 of 800 Gb/s (mleng, DGX B300), each with a PCIe switch that joins
///   it to its GPU by 16 lanes of PCIe 6.0 and to a processor by 16 of 5.0: from memory.
/// - Sockets: two Xeon 6 of four UPI links of 24 lanes at 24 GT/s, 72 GB/s each, from memory.
Cluster hgx_b300_cluster(int nodes) {
  constexpr BytesPerSecond upi = 72_GBps;

  NodeDesign design{.name = "HGX B300",
                    .gpu = "b300-sxm",
                    .vertices = {},
                    .links = {},
                    .compute_capability = 103,
                    .processor = Processor::unknown};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 8);
  const auto nv_switches = parts::add_row(design, VertexKind::nv_switch, "nvswitch", 2);
  const auto switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", 8);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);

  parts::join_to_switches(design, gpus, nv_switches, 9, parts::nvlink_5);
  parts::add_connectx_8(design, gpus, switches);
  const auto pcie = parts::pcie_of(design, parts::pcie_5_x16);
  for (std::size_t i = 0; i < switches.size(); ++i) pcie(switches[i], cpus[i / 4]);
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 4, upi, parts::socket_latency);
  return {std::move(design), nodes, parts::one_switch("XDR")};
}

}  // namespace

Preset hgx_b300() {
  return {"hgx-b300", "8 B300, 2 NVSwitches, 8 XDR adapters", &hgx_b300_cluster};
}

}  // namespace stratagem::topology

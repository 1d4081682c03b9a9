// Servers whose GPUs are PCIe cards: no NVLinks, all traffic over PCIe switches and sockets.
#include <cstddef>

#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {
namespace {

/// No product in particular, the whole shape is assumed: two sockets, each with one PCIe switch
/// that four GPUs and an adapter hang on ("dual root"), and one x16 link up from the switch. GPUs
/// that are bridged in pairs by NVLink are not shown.
NodeDesign dual_root(const std::string& name, const std::string& gpu, int capability,
                     Processor processor, BytesPerSecond pcie_x16, int socket_links,
                     BytesPerSecond socket_link) {
  NodeDesign design{.name = name,
                    .gpu = gpu,
                    .vertices = {},
                    .links = {},
                    .compute_capability = capability,
                    .processor = processor};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 8);
  const auto switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", 2);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 2);
  const auto pcie = parts::pcie_of(design, pcie_x16);
  for (std::size_t i = 0; i < 8; ++i) pcie(gpus[i], switches[i / 4]);
  for (std::size_t i = 0; i < 2; ++i) {
    pcie(nics[i], switches[i]);
    pcie(switches[i], cpus[i]);
  }
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, socket_links, socket_link,
              parts::socket_latency);
  return design;
}

/// PCIe 3.0 x16 and the sockets of the DGX-2 (its sources); one EDR adapter per socket, assumed.
Cluster pcie_v100_cluster(int nodes) {
  return {dual_root("8 x V100 PCIe", "v100-pcie", 70, Processor::intel_skylake, parts::pcie_3_x16,
                    3, 20.8_GBps),
          nodes, parts::one_switch("EDR")};
}

}  // namespace

Preset pcie_v100() {
  return {"pcie-v100", "8 V100 PCIe on two PCIe switches, 2 EDR adapters", &pcie_v100_cluster};
}

namespace {

/// PCIe 4.0 x16 and the sockets of the DGX A100 (its sources); one HDR adapter per socket, assumed.
Cluster pcie_a100_cluster(int nodes) {
  return {dual_root("8 x A100 PCIe", "a100-pcie-80gb", 80, Processor::amd, parts::pcie_4_x16, 4,
                    32_GBps),
          nodes, parts::one_switch("HDR")};
}

}  // namespace

Preset pcie_a100() {
  return {"pcie-a100", "8 A100 PCIe on two PCIe switches, 2 HDR adapters", &pcie_a100_cluster};
}

}  // namespace stratagem::topology

// DGX H100: eight H100 SXM5 on four NVSwitches, one network adapter per GPU.
#include <array>
#include <cstddef>

#include "topology/drives.hpp"
#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {

/// - NVLinks: 18 per GPU, split 5/5/4/4 over four switches, the same two with five for all eight,
///   read in the NCCL XML of an HGX H100 (IBM Cloud, H100 cluster network profile) and for GPU 0 in
///   `nvidia-smi nvlink -R` of nccl#1182; so every pair has the full 450 GB/s.
/// - PCIe: each GPU and its own ConnectX-7 under a switch of their own (PIX), read in nccl#1264;
///   5.0 x16, datasheet; four such switches per socket (hardware.json, unmarked).
/// - Adapters: 8 NDR (mleng).
/// - Sockets: Xeon 8480C from memory; four UPI 2.0 links of 24 lanes at 16 GT/s, 48 GB/s each, are
///   assumed. NCCL counts on no more than 22 GB/s between these sockets. 2 TB of memory, 32 modules
///   of 64 GB (MLPerf inference v4.1, NVIDIA's system H200-SXM-141GBx8, of the same processors).
/// - Drives: eight of 3.84 TB (user guide, from memory); that they are as fast as the DGX A100's
///   and stand at both processors is assumed.
NodeDesign dgx_h100_design(const std::string& name, const std::string& gpu) {
  constexpr std::array<int, 4> split{5, 5, 4, 4};
  constexpr BytesPerSecond upi = 48_GBps;

  NodeDesign design{.name = name,
                    .gpu = gpu,
                    .vertices = {},
                    .links = {},
                    .compute_capability = 90,
                    .processor = Processor::intel_sapphire_rapids,
                    .host_memory = 2048_GiB};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 8);
  const auto nv_switches = parts::add_row(design, VertexKind::nv_switch, "nvswitch", 4);
  const auto switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", 8);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 8);

  for (const VertexId end : gpus) {
    for (std::size_t i = 0; i < 4; ++i) {
      design.join(end, nv_switches[i], LinkKind::nvlink, split[i], parts::nvlink,
                  parts::nvlink_latency);
    }
  }
  const auto pcie = parts::pcie_of(design, parts::pcie_5_x16);
  for (std::size_t i = 0; i < 8; ++i) {
    pcie(gpus[i], switches[i]);
    pcie(nics[i], switches[i]);
    pcie(switches[i], cpus[i / 4]);
  }
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 4, upi, parts::socket_latency);
  const Drives drives{.capacity = 3.84_TB,
                      .read = 6.25_GBps,
                      .write = 3.125_GBps,
                      .provenance = "assumed",
                      .source = "size and number from memory, rates assumed"};
  return with_drives(design, 8, drives, cpus);
}

namespace {

Cluster dgx_h100_cluster(int nodes) {
  return {dgx_h100_design("DGX H100", "h100-sxm5"), nodes, parts::one_switch("NDR")};
}

}  // namespace

Preset dgx_h100() {
  return {"dgx-h100", "8 H100 SXM5, 4 NVSwitches, 8 NDR adapters", &dgx_h100_cluster};
}

}  // namespace stratagem::topology

// DGX A100: eight A100 SXM4 of 80 GB on six NVSwitches.
#include <cstddef>

#include "topology/drives.hpp"
#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {
namespace {

/// - NVLinks: two from each GPU to each of six switches, read in the NCCL XML of nccl#1505.
/// - PCIe: GPUs (2i, 2i+1) with adapters (2i, 2i+1), all PXB to each other, read in DCGM#149 for
///   GPUs 0..5, the last pair from memory. Drawn as one switch with one uplink, so both adapters
///   are equally near to both GPUs. NUMA nodes 3, 1, 7, 5 are quarters of a socket: two switches
///   per socket. 4.0 x16, datasheet.
/// - Adapters: 8 HDR (mlperf07), without those for storage and management.
/// - Sockets: EPYC 7742 (mlperf07); four links of 16 lanes at 16 GT/s, 32 GB/s each, are assumed.
///   NCCL counts on no more than 16 GB/s between AMD sockets. 2 TB of memory (NVIDIA's user guide:
///   1 TB with GPUs of 40 GB, 2 TB with those of 80 GB), taken as GiB.
/// - Drives: 30 TB (Microway's review: 15 TB with GPUs of 40 GB, which 30 TB replace), eight of
///   3.84 TB. 6.25 GB/s of reading are a quarter of the 25 GB/s that NVIDIA announced for four,
///   from memory; that writing is half as fast and their places at both processors are assumed.
Cluster dgx_a100_cluster(int nodes) {
  constexpr BytesPerSecond infinity_fabric = 32_GBps;

  NodeDesign design{.name = "DGX A100",
                    .gpu = "a100-sxm4-80gb",
                    .vertices = {},
                    .links = {},
                    .compute_capability = 80,
                    .processor = Processor::amd,
                    .host_memory = 2048_GiB};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 8);
  const auto nv_switches = parts::add_row(design, VertexKind::nv_switch, "nvswitch", 6);
  const auto switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", 4);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 8);

  parts::join_to_switches(design, gpus, nv_switches, 2, parts::nvlink);
  const auto pcie = parts::pcie_of(design, parts::pcie_4_x16);
  for (std::size_t i = 0; i < 8; ++i) {
    pcie(gpus[i], switches[i / 2]);
    pcie(nics[i], switches[i / 2]);
  }
  for (std::size_t i = 0; i < 4; ++i) pcie(switches[i], cpus[i / 2]);
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 4, infinity_fabric, parts::socket_latency);
  const Drives drives{.capacity = 3.84_TB,
                      .read = 6.25_GBps,
                      .write = 3.125_GBps,
                      .provenance = "assumed",
                      .source = "size and number published, reading from memory, writing assumed"};
  return {with_drives(design, 8, drives, cpus), nodes, parts::one_switch("HDR")};
}

}  // namespace

Preset dgx_a100() {
  return {"dgx-a100", "8 A100 SXM4 80 GB, 6 NVSwitches, 8 HDR adapters", &dgx_a100_cluster};
}

}  // namespace stratagem::topology

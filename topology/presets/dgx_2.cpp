// DGX-2: sixteen V100 SXM3 on two boards with six NVSwitches each.
#include <cstddef>

#include "topology/drives.hpp"
#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {

/// - NVLinks: one from each GPU to each of the six switches of its board, read in the NCCL XML of
///   nccl#507. The trunk of 8 links from a switch to its twin on the other board is from memory;
///   it gives a bisection of 48 links, 2.4 TB/s counting both directions.
/// - PCIe: a tree that follows the distances read in nccl-tests#78: a GPU pair and its EDR adapter
///   under one leaf (PIX), two leaves under one switch (PXB), two of those per socket (NODE). 3.0
///   x16, datasheet; that every link of the tree has 16 lanes is assumed.
/// - Adapters: 8 EDR (mlperf07), without the two for storage.
/// - Sockets: Xeon Platinum of the Skylake kind (mlperf07), UPI of 10.4 GT/s, 20.8 GB/s per link
///   and direction (xryan.net/p/295); three links between the sockets are assumed. 1.5 TB of memory
///   (DeepSpeed's posts on ZeRO-3 Offload), taken as 1536 GiB, since modules are binary.
/// - Drives: eight of 3.84 TB from memory (NVIDIA sells up to sixteen); pairs under one PCIe
///   switch, and GPUs beside them, are read in NVIDIA's GPUDirect Storage benchmarking guide, which
///   of the switches is assumed. 3.2 GB/s each are an eighth of the 25.6 GB/s of sixteen GPUs that
///   read 1.6 GB/s each (hardware.json, from memory of ZeRO-Infinity); that writing is as fast is
///   assumed.
NodeDesign dgx_2_design(const std::string& name, const std::string& gpu) {
  constexpr int trunk = 8;
  constexpr BytesPerSecond upi = 20.8_GBps;

  NodeDesign design{.name = name,
                    .gpu = gpu,
                    .vertices = {},
                    .links = {},
                    .compute_capability = 70,
                    .processor = Processor::intel_skylake,
                    .host_memory = 1536_GiB};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 16);
  const auto nv_switches = parts::add_row(design, VertexKind::nv_switch, "nvswitch", 12);
  const auto leaves = parts::add_row(design, VertexKind::pcie_switch, "leaf", 8);
  const auto roots = parts::add_row(design, VertexKind::pcie_switch, "pcie", 4);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 8);

  for (std::size_t i = 0; i < 16; ++i) {
    const std::size_t board = i / 8;
    for (std::size_t plane = 0; plane < 6; ++plane) {
      design.join(gpus[i], nv_switches[6 * board + plane], LinkKind::nvlink, 1, parts::nvlink,
                  parts::nvlink_latency);
    }
  }
  for (std::size_t plane = 0; plane < 6; ++plane) {
    design.join(nv_switches[plane], nv_switches[6 + plane], LinkKind::nvlink, trunk, parts::nvlink,
                parts::nvlink_latency);
  }
  const auto pcie = parts::pcie_of(design, parts::pcie_3_x16);
  for (std::size_t i = 0; i < 16; ++i) pcie(gpus[i], leaves[i / 2]);
  for (std::size_t i = 0; i < 8; ++i) {
    pcie(nics[i], leaves[i]);
    pcie(leaves[i], roots[i / 2]);
  }
  for (std::size_t i = 0; i < 4; ++i) pcie(roots[i], cpus[i / 2]);
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 3, upi, parts::socket_latency);
  const Drives drives{.capacity = 3.84_TB,
                      .read = 3.2_GBps,
                      .write = 3.2_GBps,
                      .provenance = "assumed",
                      .source = "size, number and reading from memory, writing assumed"};
  return with_drives(design, 8, drives, roots);
}

namespace {

Cluster dgx_2_cluster(int nodes) {
  return {dgx_2_design("DGX-2", "v100-sxm3"), nodes, parts::one_switch("EDR")};
}

}  // namespace

Preset dgx_2() {
  return {"dgx-2", "16 V100 SXM3 (350 W), 12 NVSwitches, 8 EDR adapters", &dgx_2_cluster};
}

}  // namespace stratagem::topology

// DGX-1V: eight V100 SXM2 in a hybrid cube mesh.
#include <cstddef>

#include "topology/drives.hpp"
#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {
namespace {

/// - NVLinks: the hybrid cube mesh (cube_mesh.cpp).
/// - PCIe: GPUs 0 and 1 under one switch of socket 0 read (nccl#671); an adapter per switch from
///   memory; 3.0 x16, datasheet. Adapters: 4 EDR (hardware.json).
/// - Sockets: Xeon E5-2698 v4 (mlperf07), QPI of 9.6 GT/s, 19.2 GB/s per link and direction
///   (xryan.net/p/295); that both links of a processor join the two sockets is assumed. NCCL
///   counts on no more than 6 GB/s between these sockets. 512 GB of memory (Run:ai's guide to
///   NVIDIA DGX, which prints the datasheet), taken as GiB, since modules are binary.
/// - Drives: four of 1.92 TB (encyclopedias' tables of the DGX family). That they are SATA is from
///   memory; 0.5 GB/s each way and their place at the first processor are assumed (SATA carries
///   0.6 GB/s).
Cluster dgx_1v_cluster(int nodes) {
  constexpr BytesPerSecond qpi = 19.2_GBps;

  NodeDesign design{.name = "DGX-1V",
                    .gpu = "v100-sxm2",
                    .vertices = {},
                    .links = {},
                    .compute_capability = 70,
                    .processor = Processor::intel_broadwell,
                    .host_memory = 512_GiB};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 8);
  const auto switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", 4);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 4);

  parts::join_cube_mesh(design, gpus);
  const auto pcie = parts::pcie_of(design, parts::pcie_3_x16);
  for (std::size_t gpu = 0; gpu < 8; ++gpu) pcie(gpus[gpu], switches[gpu / 2]);
  for (std::size_t i = 0; i < 4; ++i) {
    pcie(nics[i], switches[i]);
    pcie(switches[i], cpus[i / 2]);
  }
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 2, qpi, parts::socket_latency);
  const Drives drives{.capacity = 1.92_TB,
                      .read = 0.5_GBps,
                      .write = 0.5_GBps,
                      .provenance = "assumed",
                      .source = "4 of 1.92 TB published; SATA from memory, rates assumed"};
  return {with_drives(design, 4, drives, {cpus[0]}), nodes, parts::one_switch("EDR")};
}

}  // namespace

Preset dgx_1v() {
  return {"dgx-1v", "8 V100 SXM2, hybrid cube mesh, 4 EDR adapters", &dgx_1v_cluster};
}

}  // namespace stratagem::topology

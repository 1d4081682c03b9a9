// DGX-1V: eight V100 SXM2 in a hybrid cube mesh.
#include <array>
#include <cstddef>
#include <utility>

#include "topology/presets/dgx.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {

/// - NVLinks: those of GPUs 0 and 1 read in the NCCL XML of nccl#671; the others from memory of
///   `nvidia-smi topo -m`, completed by the rule of six links per GPU. The mesh is isomorphic to
///   `dgx1()` of msccl-tools and agrees with vTrain's measured all-reduces on the first 2..8 GPUs.
/// - PCIe: GPUs 0 and 1 under one switch of socket 0 read (nccl#671); an adapter per switch from
///   memory; 3.0 x16, datasheet. Adapters: 4 EDR (hardware.json).
/// - Sockets: Xeon E5-2698 v4 (mlperf07), QPI of 9.6 GT/s, 19.2 GB/s per link and direction
///   (xryan.net/p/295); that both links of a processor join the two sockets is assumed. NCCL
///   counts on no more than 6 GB/s between these sockets.
Cluster dgx_1v(int nodes) {
  struct Pair {
    int a, b, links;
  };
  constexpr std::array<Pair, 16> mesh{{{0, 1, 1},
                                       {0, 2, 1},
                                       {0, 3, 2},
                                       {0, 4, 2},
                                       {1, 2, 2},
                                       {1, 3, 1},
                                       {1, 5, 2},
                                       {2, 3, 2},
                                       {2, 6, 1},
                                       {3, 7, 1},
                                       {4, 5, 1},
                                       {4, 6, 1},
                                       {4, 7, 2},
                                       {5, 6, 2},
                                       {5, 7, 1},
                                       {6, 7, 2}}};
  constexpr BytesPerSecond qpi = 19.2_GBps;

  NodeDesign design{.name = "DGX-1V",
                    .gpu = "v100-sxm2",
                    .vertices = {},
                    .links = {},
                    .compute_capability = 70,
                    .processor = Processor::intel_broadwell};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 8);
  const auto switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", 4);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 4);

  for (const auto& [a, b, links] : mesh) {
    design.join(gpus[static_cast<std::size_t>(a)], gpus[static_cast<std::size_t>(b)],
                LinkKind::nvlink, links, parts::nvlink, parts::nvlink_latency);
  }
  const auto pcie = [&design](VertexId a, VertexId b) {
    design.join(a, b, LinkKind::pcie, 1, parts::pcie_3_x16, parts::pcie_latency);
  };
  for (std::size_t gpu = 0; gpu < 8; ++gpu) pcie(gpus[gpu], switches[gpu / 2]);
  for (std::size_t i = 0; i < 4; ++i) {
    pcie(nics[i], switches[i]);
    pcie(switches[i], cpus[i / 2]);
  }
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 2, qpi, parts::socket_latency);
  return {std::move(design), nodes, parts::edr_port, parts::edr_latency};
}

}  // namespace stratagem::topology

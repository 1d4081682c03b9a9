// AWS's instances of eight V100 SXM2: p3.16xlarge and p3dn.24xlarge.
#include <cstddef>

#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {
namespace {

/// - NVLinks: the hybrid cube mesh (cube_mesh.cpp); AWS says 300 GB/s per GPU, counting both
///   directions (from memory).
/// - PCIe: the guest sees no switches; that pairs of GPUs share one, as in a DGX-1V, is assumed,
/// and
///   so is the one network interface at socket 0. 3.0 x16, datasheet.
NodeDesign p3_design(const std::string& name, const std::string& gpu, Processor processor,
                     int socket_links, BytesPerSecond socket_link, Bytes host_memory) {
  NodeDesign design{.name = name,
                    .gpu = gpu,
                    .vertices = {},
                    .links = {},
                    .compute_capability = 70,
                    .processor = processor,
                    .host_memory = host_memory};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 8);
  const auto switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", 4);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 1);
  parts::join_cube_mesh(design, gpus);
  const auto pcie = parts::pcie_of(design, parts::pcie_3_x16);
  for (std::size_t i = 0; i < 8; ++i) pcie(gpus[i], switches[i / 2]);
  for (std::size_t i = 0; i < 4; ++i) pcie(switches[i], cpus[i / 2]);
  pcie(nics[0], cpus[0]);
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, socket_links, socket_link,
              parts::socket_latency);
  return design;
}

/// 25 Gb/s of network and two Xeon E5-2686 v4 (AWS's instance table, from memory); sockets as the
/// DGX-1V's. 488 GiB of memory (AWS's announcement of P3 instances, 2017).
Cluster p3_16xlarge_cluster(int nodes) {
  return {
      p3_design("AWS p3.16xlarge", "v100-sxm2", Processor::intel_broadwell, 2, 19.2_GBps, 488_GiB),
      nodes, parts::one_switch("25GbE")};
}

}  // namespace

Preset p3_16xlarge() {
  return {"p3.16xlarge", "AWS: 8 V100 SXM2, hybrid cube mesh, 25 Gb/s Ethernet",
          &p3_16xlarge_cluster};
}

namespace {

/// 100 Gb/s of network, V100 of 32 GB and two Xeon Platinum 8175M (AWS's instance table, from
/// memory); sockets as the DGX-2's; 768 GiB of memory from memory, too. The profile v100-sxm2 is of
/// 16 GB: scenarios say another one.
Cluster p3dn_24xlarge_cluster(int nodes) {
  return {p3_design("AWS p3dn.24xlarge", "v100-sxm2-32gb", Processor::intel_skylake, 3, 20.8_GBps,
                    768_GiB),
          nodes, parts::one_switch("100GbE")};
}

}  // namespace

Preset p3dn_24xlarge() {
  return {"p3dn.24xlarge", "AWS: 8 V100 SXM2 32 GB, hybrid cube mesh, 100 Gb/s Ethernet",
          &p3dn_24xlarge_cluster};
}

}  // namespace stratagem::topology

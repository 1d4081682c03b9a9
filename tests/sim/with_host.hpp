// Small servers with a processor.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace stratagem::sim {

/// GPUs on one switch, which costs nothing unless a test says otherwise, and a processor behind
/// PCIe: a link for each, or one for all.
inline topology::Cluster with_host(int gpus, BytesPerSecond pcie, bool shared,
                                   BytesPerSecond nvlink = {1e30}) {
  using topology::LinkKind;
  using topology::VertexKind;
  topology::NodeDesign design{.name = "host", .gpu = "test", .vertices = {}, .links = {}};
  const auto hub = design.add(VertexKind::nv_switch, "hub");
  const auto cpu = design.add(VertexKind::cpu, "cpu");
  const auto root = design.add(VertexKind::pcie_switch, "root");
  design.join(root, cpu, LinkKind::pcie, 1, shared ? pcie : BytesPerSecond{1e30}, 0_s);
  for (int i = 0; i < gpus; ++i) {
    const auto gpu = design.add(VertexKind::gpu, "gpu" + std::to_string(i));
    design.join(gpu, hub, LinkKind::nvlink, 1, nvlink, 0_s);
    design.join(gpu, root, LinkKind::pcie, 1, pcie, 0_s);
  }
  return {design, 1, {1e30}, 0_s};
}

}  // namespace stratagem::sim

// Servers of which several presets are made.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace stratagem::topology {

/// DGX-2 and DGX-2H have the same wiring and differ in their GPUs, and so have DGX H100 and DGX
/// H200.
NodeDesign dgx_2_design(const std::string& name, const std::string& gpu);
NodeDesign dgx_h100_design(const std::string& name, const std::string& gpu);

/// A rack of GB200 or GB300 of which so many compute trays, of four GPUs and two Grace each, are in
/// use: GPUs, NVLinks and processors, without network adapters.
struct GraceRack {
  NodeDesign design;
  std::vector<VertexId> gpus;
  std::vector<VertexId> switches;  ///< PCIe switches, not joined to anything yet
  std::vector<VertexId> cpus;
};
GraceRack grace_rack(const std::string& name, const std::string& gpu, int compute_capability,
                     int trays, int switches = 0);

}  // namespace stratagem::topology

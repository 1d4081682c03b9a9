// The servers that we know, a file for each or for a few that differ little; all.cpp is the table.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace stratagem::topology {

Cluster dgx_1v(int nodes);
Cluster dgx_2(int nodes);
Cluster dgx_2h(int nodes);
Cluster dgx_a100(int nodes);
Cluster dgx_h100(int nodes);
Cluster dgx_h200(int nodes);
Cluster hgx_b200(int nodes);
Cluster gb200_nvl72(int nodes);
Cluster pcie_v100(int nodes);
Cluster pcie_a100(int nodes);
Cluster p3_16xlarge(int nodes);
Cluster p3dn_24xlarge(int nodes);
Cluster cpu_host(int nodes);

/// DGX-2 and DGX-2H have the same wiring and differ in their GPUs, and so have DGX H100 and DGX
/// H200.
NodeDesign dgx_2_design(const std::string& name, const std::string& gpu);
NodeDesign dgx_h100_design(const std::string& name, const std::string& gpu);

}  // namespace stratagem::topology

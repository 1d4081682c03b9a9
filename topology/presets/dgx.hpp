// NVIDIA's DGX servers, one file each; all.cpp is the table of them.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace stratagem::topology {

Cluster dgx_1v(int nodes);
Cluster dgx_2(int nodes);
Cluster dgx_2h(int nodes);
Cluster dgx_a100(int nodes);
Cluster dgx_h100(int nodes);

/// DGX-2 and DGX-2H have the same wiring and differ in their GPUs.
NodeDesign dgx_2_design(const std::string& name, const std::string& gpu);

}  // namespace stratagem::topology

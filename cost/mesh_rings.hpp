// Rings over the NVLinks of a server whose GPUs are cabled to each other, not to switches.
#pragma once

#include <vector>

#include "topology/cluster.hpp"

namespace stratagem::cost {

/// The most Hamiltonian cycles over the given GPUs of one server such that no cable between two
/// GPUs is used by more cycles than it has NVLinks, each as the GPUs in order; a cycle serves two
/// rings, one in each direction. Two GPUs with a cable form one cycle of one ring. Empty if there
/// is none: if the GPUs hang on switches, or if no cycle follows the cables. Searched exhaustively:
/// for servers of up to 8 GPUs. Source: the rings that NCCL finds on a DGX-1V (NCCL 2.28.9, graph
/// search): 1, 2, 4 and 6 rings for its first 2, 3, 4 and 8 GPUs.
std::vector<std::vector<int>> mesh_rings(const topology::Cluster& cluster,
                                         const std::vector<int>& gpus);

}  // namespace stratagem::cost

// One server as NCCL sees it: the GPUs of a communicator, one switch, PCIe, adapters, and the speed
// that NCCL believes each link to have.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost::nccl {

/// One direction of a link between two vertices of a Server.
struct Edge {
  int from = 0;
  int to = 0;
  topology::LinkKind kind = topology::LinkKind::nvlink;
  BytesPerSecond capacity;
  friend bool operator==(const Edge&, const Edge&) = default;
};

/// GPUs and adapters are known by their index within the server's design; a GPU that is not in the
/// communicator is not there. All NVSwitches of a server are one vertex, as in NCCL's own graph.
struct Server {
  int compute_capability = 0;
  topology::Processor processor = topology::Processor::unknown;
  std::vector<topology::VertexKind> vertices;
  std::vector<Edge> edges;
  std::vector<std::vector<int>> leaving;  ///< by vertex: its outgoing edges
  std::vector<int> gpus;                  ///< of the communicator, ascending: indices in the design
  std::vector<int> gpu_vertices;          ///< by place in `gpus`
  std::vector<int> nic_vertices;          ///< by adapter
  int fabric = 0;                         ///< the vertex behind all adapters

  /// The vertex that stands for all NVSwitches, -1 without any.
  [[nodiscard]] int nv_switch() const;
  friend bool operator==(const Server&, const Server&) = default;
};

/// The rate that NCCL's search counts on for one NVLink in one direction, see server_of.
BytesPerSecond nvlink_speed(int compute_capability);

/// The same relative to the datasheet rate of the server's NVLinks; 1 for a server without NVLinks.
double nvlink_share(const topology::NodeDesign& design);

/// The speeds that NCCL's search counts on, per direction:
///   NVLink        per cable 18 (compute capability 6.0), 20 (7.0, 8.0), 12 (8.6), 20.6 (9.0),
///                 40.1 (10.0) GB/s
///   PCIe          12 GB/s for 16 lanes of the third generation and in proportion to the link's
///                 rate: 24 for the fourth, 48 for the fifth
///   sockets       6 (Broadwell, or not known), 10 (Skylake), 22 (Sapphire Rapids), 40 (Emerald
///                 Rapids), 16 (AMD) GB/s
///   adapters      their port's rate
/// Published: topo.h and topo.cc of NVIDIA/nccl 2.28.9, read.
/// `gpus` are the communicator's GPUs that stand in one node of the cluster.
Server server_of(const topology::Cluster& cluster, const std::vector<int>& gpus);

}  // namespace stratagem::cost::nccl

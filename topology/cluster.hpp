// A cluster as a graph: servers of one design and the fabric that joins them.
#pragma once

#include <memory>
#include <vector>

#include "base/quantity.hpp"
#include "topology/fabric.hpp"
#include "topology/node_design.hpp"

namespace stratagem::topology {

/// Servers of one design, joined by a fabric: every network adapter has one link, its port, to the
/// fabric's switch that it is cabled to. GPUs are numbered node by node; a vertex or link of node k
/// is the design's id plus k times its count. Then come the fabric's vertices (`Fabric::names`) and
/// the port links, from adapter to fabric, in the order of the adapters; last the fabric's own
/// links, in the order of `Fabric::uplinks`, upwards. A fabric that is one switch has one vertex
/// and none of these. A value that never changes after its construction: copies share it, and
/// threads may read it together. Routes are kept of one node and of its GPUs to the fabric; the
/// rest is put together when asked. Where a server's ranks are shares of its processors, they are
/// meant wherever GPUs are named here.
class Cluster {
 public:
  /// Throws InputError for fewer than one node, and for a design whose links are broken or whose
  /// GPUs cannot reach each other or, with several nodes, the fabric.
  Cluster(NodeDesign design, int nodes, FabricDesign fabric);
  /// With one switch that never blocks.
  Cluster(NodeDesign design, int nodes, BytesPerSecond port, Seconds port_latency);

  [[nodiscard]] const NodeDesign& design() const;
  [[nodiscard]] const Fabric& fabric() const;
  [[nodiscard]] int nodes() const;
  [[nodiscard]] int gpus_per_node() const;
  [[nodiscard]] int gpus() const;
  [[nodiscard]] int nics_per_node() const;
  [[nodiscard]] int node_of(int gpu) const;
  [[nodiscard]] const std::vector<Vertex>& vertices() const;
  [[nodiscard]] const std::vector<Link>& links() const;

  /// How a message from one GPU to another spreads over all its shortest paths. Paths do not lead
  /// through other GPUs; NVLink is preferred to C2C, that to PCIe, PCIe to the socket link, and
  /// those to the network. At each vertex the message divides in proportion to the bandwidth of the
  /// links that lead on. Within a node empty only if from == to. Across nodes it uses the adapters
  /// nearest to each end, and of the fabric what `Fabric::crossing` says: what leaves and arrives
  /// on one leaf stays there.
  [[nodiscard]] std::vector<Share> route(int from_gpu, int to_gpu) const;
  /// As route, from a GPU through the given adapter of its node (index within the node) to an
  /// adapter of another node or of the same, and to a GPU there: what a channel of NCCL does.
  [[nodiscard]] std::vector<Share> route_between(int from_gpu, int from_nic, int to_gpu,
                                                 int to_nic) const;
  /// The parts of that up to the fabric and from it: to the switch that the adapter is cabled to,
  /// and back. The adapter must be reachable without passing another GPU or the fabric.
  [[nodiscard]] std::vector<Share> route_out(int gpu, int nic) const;
  [[nodiscard]] std::vector<Share> route_in(int gpu, int nic) const;
  /// What lies between these two parts: from adapter to adapter over leaves and spines, without the
  /// ports. Empty where both are cabled to one switch.
  [[nodiscard]] std::vector<Share> route_across(int from_node, int from_nic, int to_node,
                                                int to_nic) const;
  /// Between a GPU and the processor nearest to it, whose memory stands for that of the host; empty
  /// if the node has none.
  [[nodiscard]] std::vector<Share> route_to_host(int gpu) const;
  [[nodiscard]] std::vector<Share> route_from_host(int gpu) const;
  /// Between that processor's memory and all drives of the server at once, each of which carries an
  /// equal share; empty if it has none.
  [[nodiscard]] std::vector<Share> route_to_drives(int gpu) const;
  [[nodiscard]] std::vector<Share> route_from_drives(int gpu) const;
  /// The adapters (indices within the node) nearest to a GPU, in ascending order.
  [[nodiscard]] std::vector<int> nearest_nics(int gpu) const;
  /// What `route` carries of a message alone: the least, over its links, of rate over share.
  [[nodiscard]] BytesPerSecond bandwidth(int from_gpu, int to_gpu) const;
  /// The latency of `route`: the sum of its links' latencies along the slowest of its paths. The
  /// others are the same for `route_between`, `route_to_host` and `route_to_drives`, in either
  /// direction.
  [[nodiscard]] Seconds latency(int from_gpu, int to_gpu) const;
  [[nodiscard]] Seconds latency_between(int from_gpu, int from_nic, int to_gpu, int to_nic) const;
  [[nodiscard]] Seconds latency_to_host(int gpu) const;
  [[nodiscard]] Seconds latency_to_drives(int gpu) const;

 private:
  struct Graph;
  /// Clusters of one design share it.
  static std::shared_ptr<const Graph> graph_of(NodeDesign design, int nodes, FabricDesign fabric);

  std::shared_ptr<const Graph> graph_;
};

}  // namespace stratagem::topology

// Routes within one server, and from it to the fabric: found once and kept.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "topology/network_speed.hpp"
#include "topology/node_design.hpp"

namespace stratagem::topology {

/// How a message spreads over all shortest paths between two ends of one server. Ends are its GPUs
/// (or its other ranks), its adapters, and the fabric behind them. The rules of `Cluster::route`
/// apply: no path leads through a GPU, no path between a GPU and an adapter leaves the server,
/// nearer kinds of links are preferred, and at each vertex the message divides in proportion to the
/// bandwidths that lead on. Ids are local: links of the design, then the adapters' ports in the
/// order of the adapters.
class NodeRoutes {
 public:
  struct Route {
    std::vector<Share> shares;  ///< empty if there is no way, or nowhere to go
    Seconds latency;            ///< sum along the slowest of the shortest paths
  };

  /// Throws InputError for a design without GPUs and for one whose GPUs cannot reach each other or,
  /// if `leaves_node`, the fabric.
  NodeRoutes(const NodeDesign& design, const NetworkSpeed& network, bool leaves_node);

  [[nodiscard]] int gpus() const { return gpus_; }
  [[nodiscard]] int nics() const { return static_cast<int>(ports_.size()); }
  /// The adapters' links to the fabric, whose id is the number of the design's vertices.
  [[nodiscard]] const std::vector<Link>& ports() const { return ports_; }
  /// Ends: GPUs are their own number.
  [[nodiscard]] int nic_end(int nic) const { return gpus_ + nic; }
  [[nodiscard]] int fabric_end() const { return gpus_ + nics(); }

  /// Of ends of which one is a GPU; of others it is empty.
  [[nodiscard]] const Route& between(int from_end, int to_end) const {
    return routes_[static_cast<std::size_t>(from_end) * (fabric_end() + 1) + to_end];
  }
  /// To the processor nearest to a GPU, the first of equals, and back; empty if there is none, and
  /// where ranks are processors themselves.
  [[nodiscard]] const Route& to_host(int gpu) const { return to_host_[gpu]; }
  [[nodiscard]] const Route& from_host(int gpu) const { return from_host_[gpu]; }
  /// From that processor's memory to all drives at once, each with an equal share, and
  /// back; empty without drives or without such a processor.
  [[nodiscard]] const Route& to_drives(int gpu) const { return to_drives_[gpu]; }
  [[nodiscard]] const Route& from_drives(int gpu) const { return from_drives_[gpu]; }

 private:
  class Search;
  void find_routes(const Search& search, bool leaves_node);
  void find_host_routes(const Search& search);
  void find_drive_routes(const Search& search, const std::vector<VertexId>& processors);

  int gpus_ = 0;
  std::vector<Link> ports_;
  std::vector<Route> routes_;     ///< from end to end: ends x ends
  std::vector<Route> to_host_;    ///< by GPU
  std::vector<Route> from_host_;  ///< by GPU
  std::vector<Route> to_drives_;
  std::vector<Route> from_drives_;
};

}  // namespace stratagem::topology

// Builds NCCL's picture of a server from its design.
#include "cost/nccl/server.hpp"

#include <algorithm>
#include <map>

#include "base/input_error.hpp"

namespace stratagem::cost::nccl {
namespace {

using topology::Link;
using topology::LinkKind;
using topology::VertexKind;

/// What NCCL takes a link of the design, or a port, to carry.
BytesPerSecond speed(const Link& link, const Server& server) {
  switch (link.kind) {
    case LinkKind::nvlink:
      return link.count * nvlink_speed(server.compute_capability);
    case LinkKind::pcie:
      return link.bandwidth * (12_GBps / 15.75_GBps);
    case LinkKind::inter_socket:
      return topology::nccl_socket_rate(server.processor);
    case LinkKind::c2c:
    case LinkKind::memory:  // refused before: ranks on processors have no NCCL
    case LinkKind::network:
    case LinkKind::drive:  // left out with its drive
      return link.bandwidth;
  }
  throw BrokenPromise("every kind of link has a speed");
}

class Builder {
 public:
  Builder(const topology::Cluster& cluster, const std::vector<int>& gpus)
      : design_(cluster.design()), place_(design_.vertices.size(), -1) {
    server_.compute_capability = design_.compute_capability;
    server_.processor = design_.processor;
    for (const int gpu : gpus) server_.gpus.push_back(gpu % cluster.gpus_per_node());
    std::ranges::sort(server_.gpus);
    add_vertices();
    for (const Link& link : design_.links)
      join(place_[link.a], place_[link.b], link.kind, speed(link, server_));
    server_.fabric = add(VertexKind::fabric);
    const auto port = std::ranges::find(cluster.links(), LinkKind::network, &Link::kind);
    for (const int nic : server_.nic_vertices)
      join(nic, server_.fabric, LinkKind::network, speed(*port, server_));
  }

  Server result() { return std::move(server_); }

 private:
  int add(VertexKind kind) {
    server_.vertices.push_back(kind);
    server_.leaving.emplace_back();
    return static_cast<int>(server_.vertices.size()) - 1;
  }

  void add_vertices() {
    for (std::size_t v = 0; v < design_.vertices.size(); ++v) {
      const topology::Vertex& vertex = design_.vertices[v];
      if (vertex.kind == VertexKind::gpu &&
          !std::ranges::binary_search(server_.gpus, vertex.index)) {
        continue;
      }
      if (vertex.kind == VertexKind::drive) continue;
      const int existing = vertex.kind == VertexKind::nv_switch ? server_.nv_switch() : -1;
      place_[v] = existing >= 0 ? existing : add(vertex.kind);
      if (vertex.kind == VertexKind::gpu) server_.gpu_vertices.push_back(place_[v]);
      if (vertex.kind == VertexKind::nic) server_.nic_vertices.push_back(place_[v]);
    }
  }

  /// Both directions; parallel links are one.
  void join(int a, int b, LinkKind kind, BytesPerSecond capacity) {
    if (a < 0 || b < 0 || a == b) return;
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      const auto [found, fresh] =
          edge_of_.emplace(std::pair{from, to}, static_cast<int>(server_.edges.size()));
      if (fresh) {
        server_.edges.push_back({.from = from, .to = to, .kind = kind, .capacity = capacity});
        server_.leaving[from].push_back(found->second);
      } else {
        server_.edges[found->second].capacity += capacity;
      }
    }
  }

  const topology::NodeDesign& design_;
  Server server_;
  std::vector<int> place_;  ///< by vertex of the design: vertex of the server, -1 if left out
  std::map<std::pair<int, int>, int> edge_of_;
};

}  // namespace

BytesPerSecond nvlink_speed(int compute_capability) {
  if (compute_capability >= 100) return 40.1_GBps;
  if (compute_capability >= 90) return 20.6_GBps;
  if (compute_capability == 86) return 12_GBps;
  if (compute_capability >= 70) return 20_GBps;
  return 18_GBps;
}

double nvlink_share(const topology::NodeDesign& design) {
  double share = 0;
  for (const Link& link : design.links) {
    if (link.kind != LinkKind::nvlink) continue;
    const BytesPerSecond searched = link.count * nvlink_speed(design.compute_capability);
    share = std::max(share, searched / link.bandwidth);
  }
  return share > 0 ? share : 1;
}

int Server::nv_switch() const {
  const auto found = std::ranges::find(vertices, VertexKind::nv_switch);
  return found == vertices.end() ? -1 : static_cast<int>(found - vertices.begin());
}

Server server_of(const topology::Cluster& cluster, const std::vector<int>& gpus) {
  expects(!gpus.empty(), "a communicator has a GPU on each of its servers");
  return Builder(cluster, gpus).result();
}

}  // namespace stratagem::cost::nccl

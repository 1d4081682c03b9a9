// What tests ask about a route: what enters and leaves its vertices, and how fast it is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "topology/cluster.hpp"

namespace stratagem::topology {

inline const Vertex& vertex(const Cluster& cluster, VertexId id) {
  return cluster.vertices()[static_cast<std::size_t>(id)];
}
inline const Link& link(const Cluster& cluster, Direction direction) {
  return cluster.links()[static_cast<std::size_t>(direction.link)];
}
inline VertexId tail(const Cluster& cluster, Direction direction) {
  return direction.forward ? link(cluster, direction).a : link(cluster, direction).b;
}
inline VertexId head(const Cluster& cluster, Direction direction) {
  return direction.forward ? link(cluster, direction).b : link(cluster, direction).a;
}

/// The vertices of a kind in the whole cluster, in order; the n-th GPU is the n-th of its kind.
inline std::vector<VertexId> all_of(const Cluster& cluster, VertexKind kind) {
  std::vector<VertexId> ids;
  for (std::size_t id = 0; id < cluster.vertices().size(); ++id) {
    if (cluster.vertices()[id].kind == kind) ids.push_back(static_cast<VertexId>(id));
  }
  return ids;
}

/// Shares that leave each vertex less those that enter it: 1 at the source, -1 at the target, 0
/// between.
inline bool is_unit_flow(const Cluster& cluster, const std::vector<Share>& shares, VertexId from,
                         VertexId to) {
  std::map<VertexId, double> net;
  std::map<VertexId, double> entered;
  for (const Share& share : shares) {
    if (share.share <= 0 || share.share > 1 + 1e-12) return false;
    net[tail(cluster, share.direction)] += share.share;
    net[head(cluster, share.direction)] -= share.share;
    entered[head(cluster, share.direction)] += share.share;
  }
  net[from] -= 1;
  net[to] += 1;
  const auto balanced = [](const auto& entry) { return std::abs(entry.second) < 1e-12; };
  return std::all_of(net.begin(), net.end(), balanced) && std::abs(entered[to] - 1) < 1e-12 &&
         entered[from] == 0;
}

/// The vertices of a kind that a route passes or ends at.
inline std::set<VertexId> touched(const Cluster& cluster, const std::vector<Share>& shares,
                                  VertexKind kind) {
  std::set<VertexId> ids;
  for (const Share& share : shares) {
    for (const VertexId id : {tail(cluster, share.direction), head(cluster, share.direction)}) {
      if (vertex(cluster, id).kind == kind) ids.insert(id);
    }
  }
  return ids;
}

inline std::set<LinkKind> kinds(const Cluster& cluster, const std::vector<Share>& shares) {
  std::set<LinkKind> found;
  for (const Share& share : shares) found.insert(link(cluster, share.direction).kind);
  return found;
}

/// What one message alone can have: the link with the most share per bandwidth holds it up.
inline BytesPerSecond bottleneck(const Cluster& cluster, const std::vector<Share>& shares) {
  double seconds_per_byte = 0;
  for (const Share& share : shares) {
    seconds_per_byte =
        std::max(seconds_per_byte, share.share / link(cluster, share.direction).bandwidth.value);
  }
  return {1 / seconds_per_byte};
}

/// NVLinks at each vertex.
inline std::map<VertexId, int> nvlinks(const NodeDesign& design) {
  std::map<VertexId, int> number;
  for (const Link& link : design.links) {
    if (link.kind != LinkKind::nvlink) continue;
    number[link.a] += link.count;
    number[link.b] += link.count;
  }
  return number;
}

}  // namespace stratagem::topology

// Loads of rings on links, computed edge by edge from the cluster's routes.
#include "cost/ring.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "cost/link_loads.hpp"
#include "cost/mesh_rings.hpp"

namespace stratagem::cost {
namespace {

using topology::Cluster;

/// The ranks of a group that stand on one node, in the order of the group.
struct NodeMembers {
  int node;
  std::vector<int> gpus;
  std::vector<int> nics;  ///< adapters nearest to any of them
};

std::vector<NodeMembers> by_node(const Cluster& cluster, const std::vector<int>& ranks) {
  std::vector<NodeMembers> nodes;
  for (const int rank : ranks) {
    const int node = cluster.node_of(rank);
    auto found = std::ranges::find(nodes, node, &NodeMembers::node);
    if (found == nodes.end()) found = nodes.insert(nodes.end(), {node, {}, {}});
    found->gpus.push_back(rank);
  }
  for (NodeMembers& members : nodes) {
    std::set<int> nics;
    for (const int gpu : members.gpus) {
      for (const int nic : cluster.nearest_nics(gpu)) nics.insert(nic);
    }
    members.nics.assign(nics.begin(), nics.end());
  }
  return nodes;
}

/// The group's GPUs on a node that have the given adapter among their nearest.
std::vector<int> gpus_near(const Cluster& cluster, const NodeMembers& members, int nic) {
  std::vector<int> near;
  for (const int gpu : members.gpus) {
    const std::vector<int> nics = cluster.nearest_nics(gpu);
    if (std::ranges::find(nics, nic) != nics.end()) near.push_back(gpu);
  }
  return near;
}

/// One ring edge leaves and one enters every node, spread over its adapters.
void add_network_edges(LinkLoads& loads, const Cluster& cluster, const NodeMembers& members,
                       double per_edge) {
  for (const int nic : members.nics) {
    const std::vector<int> near = gpus_near(cluster, members, nic);
    const double amount = per_edge / static_cast<double>(members.nics.size() * near.size());
    for (const int gpu : near) {
      loads.add(cluster.route_out(gpu, nic), amount);
      loads.add(cluster.route_in(gpu, nic), amount);
    }
  }
}

/// Loads and hops while they are summed.
struct Sums {
  LinkLoads loads;
  Hops hops;
};

/// From the farthest GPU that has one adapter among its nearest to the farthest of the other's.
Seconds slowest_way(const Cluster& cluster, const NodeMembers& from, int nic_out,
                    const NodeMembers& to, int nic_in) {
  Seconds slowest;
  for (const int sender : gpus_near(cluster, from, nic_out)) {
    for (const int receiver : gpus_near(cluster, to, nic_in)) {
      slowest = std::max(slowest, cluster.latency_between(sender, nic_out, receiver, nic_in));
    }
  }
  return slowest;
}

/// The edge from a node to the next one, over leaves and spines: from adapter to adapter in turn
/// where both have as many, else from each to all.
void add_crossing(Sums& sums, const Cluster& cluster, const NodeMembers& from,
                  const NodeMembers& to, double per_edge) {
  const bool in_turn = from.nics.size() == to.nics.size();
  const auto ways = static_cast<double>(from.nics.size() * (in_turn ? 1 : to.nics.size()));
  for (std::size_t i = 0; i < from.nics.size(); ++i) {
    for (std::size_t j = 0; j < to.nics.size(); ++j) {
      if (in_turn && i != j) continue;
      sums.loads.add(cluster.route_across(from.node, from.nics[i], to.node, to.nics[j]),
                     per_edge / ways);
      sums.hops.far =
          std::max(sums.hops.far, slowest_way(cluster, from, from.nics[i], to, to.nics[j]));
    }
  }
}

/// Along the rings that follow the cables of a mesh, both ways round every cycle.
void add_mesh_edges(Sums& sums, const Cluster& cluster, const std::vector<std::vector<int>>& cycles,
                    double per_edge) {
  const bool pair = cycles.front().size() == 2;
  const double amount = per_edge / static_cast<double>(cycles.size() * (pair ? 1 : 2));
  for (const std::vector<int>& cycle : cycles) {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const int next = cycle[(i + 1) % cycle.size()];
      sums.loads.add(cluster.route(cycle[i], next), amount);
      if (!pair) sums.loads.add(cluster.route(next, cycle[i]), amount);
      sums.hops.near = std::max(sums.hops.near, cluster.latency(cycle[i], next));
    }
  }
}

/// Every GPU of a node sends to one other GPU of the node.
void add_node_edges(Sums& sums, const Cluster& cluster, const std::vector<int>& gpus,
                    double per_edge) {
  if (gpus.size() < 2) return;
  if (const auto cycles = mesh_rings(cluster, gpus); !cycles.empty())
    return add_mesh_edges(sums, cluster, cycles, per_edge);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const int next = gpus[(i + 1) % gpus.size()];
    sums.loads.add(cluster.route(gpus[i], next), per_edge);
    sums.hops.near = std::max(sums.hops.near, cluster.latency(gpus[i], next));
  }
}

void add_ring(Sums& sums, const Cluster& cluster, const std::vector<NodeMembers>& nodes,
              double per_edge) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeMembers& members = nodes[i];
    const auto k = static_cast<double>(members.gpus.size());
    const double share = nodes.size() == 1 ? 1.0 : (k - 1) / k;
    add_node_edges(sums, cluster, members.gpus, per_edge * share);
    if (nodes.size() == 1) continue;
    add_network_edges(sums.loads, cluster, members, per_edge);
    add_crossing(sums, cluster, members, nodes[(i + 1) % nodes.size()], per_edge);
  }
}

/// Straight from one rank to another.
void add_message(Sums& sums, const Cluster& cluster, int from, int to, double amount) {
  sums.loads.add(cluster.route(from, to), amount);
  Seconds& slowest = cluster.node_of(from) == cluster.node_of(to) ? sums.hops.near : sums.hops.far;
  slowest = std::max(slowest, cluster.latency(from, to));
}

void add_all_to_all(Sums& sums, const Cluster& cluster, const std::vector<int>& ranks) {
  for (const int from : ranks) {
    for (const int to : ranks) {
      if (from != to) add_message(sums, cluster, from, to, 1.0 / static_cast<double>(ranks.size()));
    }
  }
}

/// A copy between a GPU and its host.
Route host_route(CollectiveKind kind, const Cluster& cluster, int gpu,
                 const CollectiveConstants& constants) {
  const bool leaves = kind == CollectiveKind::to_host;
  const auto shares = leaves ? cluster.route_to_host(gpu) : cluster.route_from_host(gpu);
  if (shares.empty()) {
    throw InputError("", "/cluster", "GPUs that reach a processor, for copies to the host",
                     cluster.design().name +
                         (cluster.design().on_processors() ? ", whose ranks are processors" : ""));
  }
  LinkLoads loads;
  loads.add(shares, 1);
  return {.loads = loads.list(),
          .latency = constants.host_step.value +
                     excess(cluster.latency_to_host(gpu), constants.host_link_latency)};
}

/// What a GPU's host reads or writes is spread over all drives of the server.
Route drive_route(CollectiveKind kind, const Cluster& cluster, int gpu) {
  const bool leaves = kind == CollectiveKind::to_drives;
  const auto shares = leaves ? cluster.route_to_drives(gpu) : cluster.route_from_drives(gpu);
  if (shares.empty())
    throw InputError("", "/cluster", "servers with drives", cluster.design().name + " without");
  LinkLoads loads;
  loads.add(shares, 1);
  return {.loads = loads.list(), .latency = cluster.latency_to_drives(gpu)};
}

int nodes_of(const Cluster& cluster, const std::vector<int>& ranks) {
  std::set<int> nodes;
  for (const int rank : ranks) nodes.insert(cluster.node_of(rank));
  return static_cast<int>(nodes.size());
}

Seconds fixed_time(CollectiveKind kind, int ranks, int nodes, const Hops& hops,
                   const CollectiveConstants& constants) {
  const Seconds near = constants.node_step.value + excess(hops.near, constants.node_link_latency);
  const Seconds far =
      constants.network_step.value + excess(hops.far, constants.network_link_latency);
  if (kind == CollectiveKind::all_to_all)
    return constants.base.value +
           std::max(ranks > nodes ? near : Seconds{}, nodes > 1 ? far : Seconds{});
  const Steps steps = ring_steps(kind, ranks, nodes);
  return constants.base.value + steps.near * near + steps.far * far;
}

}  // namespace

double ring_factor(CollectiveKind kind, double n) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::ring_exchange:
    case CollectiveKind::ring_messages:
      return 1;
    default:
      return (n - 1) / n;
  }
}

Steps ring_steps(CollectiveKind kind, int ranks, int nodes) {
  if (takes_one_step(kind)) return nodes > 1 ? Steps{.far = 1} : Steps{.near = 1};
  const int rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  const int far = rounds * (nodes - 1);
  return {.near = rounds * (ranks - 1) - far, .far = far};
}

Route ring_route(CollectiveKind kind, const Cluster& cluster, const std::vector<int>& ranks,
                 const CollectiveConstants& constants) {
  expects(!ranks.empty(), "a collective has at least one rank");
  if (concerns_drives(kind)) return drive_route(kind, cluster, ranks.front());
  if (concerns_host(kind)) return host_route(kind, cluster, ranks.front(), constants);
  if (ranks.size() == 1) return {};
  Carried carried = ring_loads(kind, cluster, ranks);
  const Seconds latency = fixed_time(kind, static_cast<int>(ranks.size()), nodes_of(cluster, ranks),
                                     carried.hops, constants);
  return {.loads = std::move(carried.loads), .latency = latency};
}

Carried ring_loads(CollectiveKind kind, const Cluster& cluster, const std::vector<int>& ranks) {
  expects(ranks.size() > 1, "a message has somebody to go to");
  Sums sums;
  if (kind == CollectiveKind::send) {
    add_message(sums, cluster, ranks[0], ranks[1], 1);
  } else if (kind == CollectiveKind::all_to_all) {
    add_all_to_all(sums, cluster, ranks);
  } else {
    add_ring(sums, cluster, by_node(cluster, ranks),
             ring_factor(kind, static_cast<double>(ranks.size())));
  }
  return {.loads = sums.loads.list(), .hops = sums.hops};
}

BytesPerSecond usable_bandwidth(const topology::Link& link, const CollectiveConstants& constants,
                                bool forward) {
  switch (link.kind) {
    case topology::LinkKind::nvlink:
      return link.bandwidth * constants.nvlink_efficiency.value;
    case topology::LinkKind::network:
      return link.bandwidth * constants.network_efficiency.value;
    case topology::LinkKind::memory:
      expects(constants.memory_efficiency.has_value(), "a profile for ranks on processors");
      return link.bandwidth * constants.memory_efficiency->value;
    case topology::LinkKind::drive:
      return link.toward(forward);
    default:
      return link.bandwidth * constants.pcie_efficiency.value;
  }
}

}  // namespace stratagem::cost

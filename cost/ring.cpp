// Loads of rings on links, computed edge by edge from the cluster's routes.
#include "cost/ring.hpp"

#include <algorithm>
#include <array>
#include <set>

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

/// The edge from a node to the next one, over leaves and spines: from adapter to adapter in turn where
/// both have as many, else from each to all.
void add_crossing(LinkLoads& loads, const Cluster& cluster, const NodeMembers& from,
                  const NodeMembers& to, double per_edge) {
  const bool in_turn = from.nics.size() == to.nics.size();
  const auto ways = static_cast<double>(from.nics.size() * (in_turn ? 1 : to.nics.size()));
  for (std::size_t i = 0; i < from.nics.size(); ++i) {
    for (std::size_t j = 0; j < to.nics.size(); ++j) {
      if (in_turn && i != j) continue;
      loads.add(cluster.route_across(from.node, from.nics[i], to.node, to.nics[j]),
                per_edge / ways);
    }
  }
}

/// Along the rings that follow the cables of a mesh, both ways round every cycle.
void add_mesh_edges(LinkLoads& loads, const Cluster& cluster,
                    const std::vector<std::vector<int>>& cycles, double per_edge) {
  const bool pair = cycles.front().size() == 2;
  const double amount = per_edge / static_cast<double>(cycles.size() * (pair ? 1 : 2));
  for (const std::vector<int>& cycle : cycles) {
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const int next = cycle[(i + 1) % cycle.size()];
      loads.add(cluster.route(cycle[i], next), amount);
      if (!pair) loads.add(cluster.route(next, cycle[i]), amount);
    }
  }
}

/// Every GPU of a node sends to one other GPU of the node.
void add_node_edges(LinkLoads& loads, const Cluster& cluster, const std::vector<int>& gpus,
                    double per_edge) {
  if (gpus.size() < 2) return;
  if (const auto cycles = mesh_rings(cluster, gpus); !cycles.empty())
    return add_mesh_edges(loads, cluster, cycles, per_edge);
  for (std::size_t i = 0; i < gpus.size(); ++i)
    loads.add(cluster.route(gpus[i], gpus[(i + 1) % gpus.size()]), per_edge);
}

void add_ring(LinkLoads& loads, const Cluster& cluster, const std::vector<NodeMembers>& nodes,
              double per_edge) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const NodeMembers& members = nodes[i];
    const auto k = static_cast<double>(members.gpus.size());
    const double share = nodes.size() == 1 ? 1.0 : (k - 1) / k;
    add_node_edges(loads, cluster, members.gpus, per_edge * share);
    if (nodes.size() == 1) continue;
    add_network_edges(loads, cluster, members, per_edge);
    add_crossing(loads, cluster, members, nodes[(i + 1) % nodes.size()], per_edge);
  }
}

void add_all_to_all(LinkLoads& loads, const Cluster& cluster, const std::vector<int>& ranks) {
  for (const int from : ranks) {
    for (const int to : ranks) {
      if (from != to) loads.add(cluster.route(from, to), 1.0 / static_cast<double>(ranks.size()));
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
  return {.loads = loads.list(), .latency = constants.host_step.value};
}

/// What a GPU's host reads or writes is spread over all drives of the server.
Route drive_route(CollectiveKind kind, const Cluster& cluster, int gpu) {
  const bool leaves = kind == CollectiveKind::to_drives;
  const auto shares = leaves ? cluster.route_to_drives(gpu) : cluster.route_from_drives(gpu);
  if (shares.empty())
    throw InputError("", "/cluster", "servers with drives", cluster.design().name + " without");
  LinkLoads loads;
  loads.add(shares, 1);
  return {.loads = loads.list(), .latency = {}};
}

Seconds fixed_time(CollectiveKind kind, int ranks, int nodes,
                   const CollectiveConstants& constants) {
  if (kind == CollectiveKind::send || kind == CollectiveKind::all_to_all) {
    return constants.base.value +
           (nodes > 1 ? constants.network_step.value : constants.node_step.value);
  }
  const int rounds = kind == CollectiveKind::all_reduce ? 2 : 1;
  const int network_steps = rounds * (nodes - 1);
  const int node_steps = rounds * (ranks - 1) - network_steps;
  return constants.base.value + node_steps * constants.node_step.value +
         network_steps * constants.network_step.value;
}

}  // namespace

double ring_factor(CollectiveKind kind, double n) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return 1;
    default:
      return (n - 1) / n;
  }
}

std::string to_text(CollectiveKind kind) {
  constexpr std::array names = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                "broadcast",  "send",       "reduce",         "to_host",
                                "from_host",  "to_drives",  "from_drives"};
  return names[static_cast<std::size_t>(kind)];
}

Route ring_route(CollectiveKind kind, const Cluster& cluster, const std::vector<int>& ranks,
                 const CollectiveConstants& constants) {
  expects(!ranks.empty(), "a collective has at least one rank");
  if (concerns_drives(kind)) return drive_route(kind, cluster, ranks.front());
  if (concerns_host(kind)) return host_route(kind, cluster, ranks.front(), constants);
  if (ranks.size() == 1) return {};
  const std::vector<NodeMembers> nodes = by_node(cluster, ranks);
  LinkLoads loads;
  if (kind == CollectiveKind::send) {
    loads.add(cluster.route(ranks[0], ranks[1]), 1);
  } else if (kind == CollectiveKind::all_to_all) {
    add_all_to_all(loads, cluster, ranks);
  } else {
    add_ring(loads, cluster, nodes, ring_factor(kind, static_cast<double>(ranks.size())));
  }
  const auto count = [](const auto& list) { return static_cast<int>(list.size()); };
  return {loads.list(), fixed_time(kind, count(ranks), count(nodes), constants)};
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

Seconds collective_time(const Route& route, Bytes payload, const Cluster& cluster,
                        const CollectiveConstants& constants) {
  Seconds slowest = payload / route.limit;
  for (const LinkLoad& load : route.loads) {
    const BytesPerSecond usable =
        usable_bandwidth(cluster.links()[load.direction.link], constants, load.direction.forward);
    slowest = std::max(slowest, payload * load.load / usable);
  }
  return route.latency + slowest;
}

}  // namespace stratagem::cost

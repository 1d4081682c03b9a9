// A cluster's graph and its routes, found once on one node's design and translated to the others.
#include "topology/cluster.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "base/input_error.hpp"

namespace stratagem::topology {

namespace {

/// A link of each kind costs as much as a thousand of the kind before it, which no node has in a
/// row, so that a slower kind is taken only where there is no other way.
std::int64_t weight(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return 1;
    case LinkKind::c2c:
      return 1'000;
    case LinkKind::pcie:
      return 1'000'000;
    case LinkKind::inter_socket:
      return 1'000'000'000;
    case LinkKind::network:
      return 1'000'000'000'000;
  }
  expects(false, "every kind of link has a weight");
  return 0;
}

constexpr std::int64_t unreachable = std::numeric_limits<std::int64_t>::max();

struct Cable {
  LinkId link = 0;
  std::int64_t weight = 0;
};

using Adjacency =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property, Cable>;

/// Ids of a route are local: those of the design, and the ports after the design's links.
struct Route {
  std::vector<Share> shares;
  Seconds latency;
};

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
  throw InputError("", "", expected, found);
}

NodeDesign checked(NodeDesign design, int nodes) {
  const auto positive = [](BytesPerSecond rate) {
    return std::isfinite(rate.value) && rate.value > 0;
  };
  const auto duration = [](Seconds time) { return std::isfinite(time.value) && time.value >= 0; };
  const auto size = static_cast<int>(design.vertices.size());
  if (nodes < 1) refuse("at least 1 node", std::to_string(nodes));
  for (const Vertex& vertex : design.vertices) {
    if (vertex.kind == VertexKind::fabric) refuse("a node design without a fabric", vertex.name);
  }
  for (const Link& link : design.links) {
    const std::string text = "link " + std::to_string(link.a) + " - " + std::to_string(link.b);
    if (link.a < 0 || link.a >= size || link.b < 0 || link.b >= size || link.a == link.b) {
      refuse("links between two vertices of the node", text);
    }
    if (link.count < 1) refuse("links of at least 1 cable", text);
    if (!positive(link.bandwidth)) refuse("links with a bandwidth above 0", text);
    if (!duration(link.latency)) refuse("links with a latency of 0 or more", text);
  }
  return design;
}

int adapters(const NodeDesign& design) {
  return static_cast<int>(std::ranges::count(design.vertices, VertexKind::nic, &Vertex::kind));
}

}  // namespace

std::string to_text(VertexKind kind) {
  switch (kind) {
    case VertexKind::gpu:
      return "GPU";
    case VertexKind::nv_switch:
      return "NVSwitch";
    case VertexKind::pcie_switch:
      return "PCIe switch";
    case VertexKind::cpu:
      return "CPU";
    case VertexKind::nic:
      return "NIC";
    case VertexKind::fabric:
      return "fabric";
  }
  expects(false, "every kind of vertex has a name");
  return {};
}

std::string to_text(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "NVLink";
    case LinkKind::c2c:
      return "C2C";
    case LinkKind::pcie:
      return "PCIe";
    case LinkKind::inter_socket:
      return "inter-socket";
    case LinkKind::network:
      return "network";
  }
  expects(false, "every kind of link has a name");
  return {};
}

VertexId NodeDesign::add(VertexKind kind, const std::string& vertex_name) {
  const auto same = [kind](const Vertex& vertex) { return vertex.kind == kind; };
  const auto index = static_cast<int>(std::count_if(vertices.begin(), vertices.end(), same));
  vertices.push_back({.kind = kind, .node = 0, .index = index, .name = vertex_name});
  return static_cast<VertexId>(vertices.size()) - 1;
}

void NodeDesign::join(VertexId a, VertexId b, LinkKind kind, int count, BytesPerSecond each,
                      Seconds latency) {
  links.push_back({.a = a,
                   .b = b,
                   .kind = kind,
                   .count = count,
                   .bandwidth = count * each,
                   .latency = latency});
}

/// Routes run between ends: the GPUs, then the adapters of a node, then the fabric.
struct Cluster::Graph {
  NodeDesign design;
  int nodes = 1;
  Fabric fabric;
  std::vector<Vertex> vertices;  ///< of the whole cluster
  std::vector<Link> links;       ///< of the whole cluster

  std::vector<VertexId> gpus;     ///< local
  std::vector<VertexId> nics;     ///< local
  std::vector<Vertex> one_node;   ///< the design's vertices and the fabric
  std::vector<Link> local_links;  ///< the design's links and the ports
  Adjacency adjacency;            ///< of one node and the fabric
  std::vector<Route> routes;      ///< from end to end: ends x ends
  std::vector<Route> to_host;     ///< by GPU: to the nearest processor
  std::vector<Route> from_host;   ///< and back

  Graph(NodeDesign node_design, int node_count, FabricDesign fabric_design);

  [[nodiscard]] int gpu_count() const { return static_cast<int>(gpus.size()); }
  [[nodiscard]] int nic_count() const { return static_cast<int>(nics.size()); }
  [[nodiscard]] int fabric_end() const { return gpu_count() + nic_count(); }
  [[nodiscard]] int nic_end(int nic) const { return gpu_count() + nic; }
  [[nodiscard]] VertexId vertex_of(int end) const;
  [[nodiscard]] const Route& between(int from_end, int to_end) const {
    return routes[static_cast<std::size_t>(from_end) * (fabric_end() + 1) + to_end];
  }

  /// Whether a path towards `target` may lead on through `vertex`.
  [[nodiscard]] bool leads_on(VertexId vertex, VertexId target) const;
  [[nodiscard]] std::vector<std::int64_t> distances_to(VertexId target) const;
  [[nodiscard]] Route find(VertexId from, VertexId to,
                           const std::vector<std::int64_t>& distance) const;
  void build_local();
  void build_cluster();
  void build_fabric();
  void build_routes();
  void build_host_routes();

  /// Appends local shares as those of node `node`.
  void translate(const std::vector<Share>& shares, int node, std::vector<Share>& to) const;
  /// The leaf that a port's adapter is cabled to; the link is the cluster's.
  [[nodiscard]] int leaf_of(LinkId port) const;
  [[nodiscard]] bool is_port(LinkId link) const;
  /// Appends what the messages of a route do within the fabric, from port to port.
  void cross(std::vector<Share>& shares) const;
  [[nodiscard]] Seconds crossing_latency(const std::vector<Share>& shares) const;
  [[nodiscard]] Direction port(int nic, bool out) const {
    return {.link = static_cast<LinkId>(design.links.size()) + nic, .forward = out};
  }
};

Cluster::Graph::Graph(NodeDesign node_design, int node_count, FabricDesign fabric_design)
    : design(checked(std::move(node_design), node_count)),
      nodes(node_count),
      fabric(std::move(fabric_design), node_count, adapters(design)) {
  build_local();
  if (gpus.empty()) refuse("a node design with at least 1 GPU", design.name);
  build_cluster();
  build_fabric();
  build_routes();
  build_host_routes();
}

void Cluster::Graph::build_local() {
  one_node = design.vertices;
  one_node.push_back({.kind = VertexKind::fabric, .node = -1, .index = 0, .name = "fabric"});
  const auto outside = static_cast<VertexId>(design.vertices.size());
  local_links = design.links;
  for (VertexId vertex = 0; vertex < outside; ++vertex) {
    const VertexKind kind = one_node[static_cast<std::size_t>(vertex)].kind;
    if (kind == VertexKind::gpu) gpus.push_back(vertex);
    if (kind != VertexKind::nic) continue;
    nics.push_back(vertex);
    local_links.push_back({.a = vertex,
                           .b = outside,
                           .kind = LinkKind::network,
                           .count = 1,
                           .bandwidth = fabric.design().speed.port,
                           .latency = fabric.design().speed.port_latency});
  }
  adjacency = Adjacency(one_node.size());
  for (std::size_t link = 0; link < local_links.size(); ++link) {
    const Link& cable = local_links[link];
    boost::add_edge(static_cast<std::size_t>(cable.a), static_cast<std::size_t>(cable.b),
                    Cable{.link = static_cast<LinkId>(link), .weight = weight(cable.kind)},
                    adjacency);
  }
}

void Cluster::Graph::build_cluster() {
  const auto size = static_cast<VertexId>(design.vertices.size());
  for (int node = 0; node < nodes; ++node) {
    for (Vertex vertex : design.vertices) {
      vertex.node = node;
      vertex.name = "node" + std::to_string(node) + "/" + vertex.name;
      vertices.push_back(std::move(vertex));
    }
    for (Link link : design.links) {
      link.a += node * size;
      link.b += node * size;
      links.push_back(link);
    }
  }
}

void Cluster::Graph::build_fabric() {
  const auto size = static_cast<VertexId>(design.vertices.size());
  const VertexId first = nodes * size;
  for (const std::string& name : fabric.names()) {
    const auto index = static_cast<int>(vertices.size()) - first;
    vertices.push_back({.kind = VertexKind::fabric, .node = -1, .index = index, .name = name});
  }
  for (int node = 0; node < nodes; ++node) {
    for (int nic = 0; nic < nic_count(); ++nic) {
      Link link = local_links[design.links.size() + static_cast<std::size_t>(nic)];
      link.a += node * size;
      link.b = first + fabric.leaf_of(node, nic);
      links.push_back(link);
    }
  }
  for (const Fabric::Uplink& uplink : fabric.uplinks()) {
    links.push_back({.a = first + uplink.below,
                     .b = first + uplink.above,
                     .kind = LinkKind::network,
                     .count = uplink.cables,
                     .bandwidth = uplink.bandwidth,
                     .latency = fabric.design().speed.switch_latency});
  }
}

VertexId Cluster::Graph::vertex_of(int end) const {
  if (end < gpu_count()) return gpus[static_cast<std::size_t>(end)];
  if (end < fabric_end()) return nics[static_cast<std::size_t>(end - gpu_count())];
  return static_cast<VertexId>(design.vertices.size());
}

bool Cluster::Graph::leads_on(VertexId vertex, VertexId target) const {
  const auto kind = [this](VertexId id) { return one_node[static_cast<std::size_t>(id)].kind; };
  if (kind(vertex) == VertexKind::gpu) return false;
  return kind(vertex) != VertexKind::fabric || kind(target) != VertexKind::nic;
}

std::vector<std::int64_t> Cluster::Graph::distances_to(VertexId target) const {
  // Dijkstra starts at the target and leaves a vertex only where a path may lead through it.
  const auto may_leave = [this, target](const Adjacency::edge_descriptor& edge) {
    const auto vertex = static_cast<VertexId>(boost::source(edge, adjacency));
    return vertex == target || leads_on(vertex, target);
  };
  const boost::filtered_graph<Adjacency, std::function<bool(const Adjacency::edge_descriptor&)>>
      usable(adjacency, may_leave);
  const auto index = boost::get(boost::vertex_index, adjacency);
  std::vector<std::int64_t> distance(one_node.size(), unreachable);
  std::vector<boost::default_color_type> colours(one_node.size());
  boost::dijkstra_shortest_paths(
      usable, static_cast<std::size_t>(target), boost::dummy_property_map(),
      boost::make_iterator_property_map(distance.begin(), index),
      boost::get(&Cable::weight, usable), index, std::less<>(), std::plus<>(), unreachable,
      std::int64_t{0}, boost::default_dijkstra_visitor(),
      boost::make_iterator_property_map(colours.begin(), index));
  return distance;
}

Route Cluster::Graph::find(VertexId from, VertexId to,
                           const std::vector<std::int64_t>& distance) const {
  const auto remaining = [&distance](VertexId id) {
    return distance[static_cast<std::size_t>(id)];
  };
  Route route;
  if (remaining(from) == unreachable) return route;

  struct Step {
    LinkId link = 0;
    VertexId to = 0;
  };
  // What has arrived where, the farthest vertex first: all that flows into it has arrived by then.
  std::map<std::pair<std::int64_t, VertexId>, double> arrived{{{-remaining(from), from}, 1.0}};
  VertexId on_first_path = from;
  while (!arrived.empty()) {
    const VertexId vertex = arrived.begin()->first.second;
    const double share = arrived.begin()->second;
    arrived.erase(arrived.begin());
    if (vertex == to) continue;

    std::vector<Step> steps;
    BytesPerSecond total;
    const auto edges = boost::out_edges(static_cast<std::size_t>(vertex), adjacency);
    for (auto edge = edges.first; edge != edges.second; ++edge) {
      const Cable& cable = adjacency[*edge];
      const auto next = static_cast<VertexId>(boost::target(*edge, adjacency));
      if (next != to && !leads_on(next, to)) continue;
      if (remaining(next) != remaining(vertex) - cable.weight) continue;
      steps.push_back({.link = cable.link, .to = next});
      total += local_links[static_cast<std::size_t>(cable.link)].bandwidth;
    }
    std::sort(steps.begin(), steps.end(), [](Step x, Step y) { return x.link < y.link; });
    for (const Step step : steps) {
      const Link& link = local_links[static_cast<std::size_t>(step.link)];
      const double part = share * (link.bandwidth / total);
      route.shares.push_back({{.link = step.link, .forward = link.a == vertex}, part});
      arrived[{-remaining(step.to), step.to}] += part;
    }
    if (vertex == on_first_path) {
      route.latency += local_links[static_cast<std::size_t>(steps.front().link)].latency;
      on_first_path = steps.front().to;
    }
  }
  return route;
}

void Cluster::Graph::build_routes() {
  const int ends = fabric_end() + 1;
  routes.resize(static_cast<std::size_t>(ends) * ends);
  for (int to = 0; to < ends; ++to) {
    const std::vector<std::int64_t> distance = distances_to(vertex_of(to));
    for (int from = 0; from < ends; ++from) {
      if (from == to || (from >= gpu_count() && to >= gpu_count())) continue;
      Route& route = routes[static_cast<std::size_t>(from) * ends + to];
      route = find(vertex_of(from), vertex_of(to), distance);
      const bool needed =
          from < gpu_count() && (to < gpu_count() || (to == fabric_end() && nodes > 1));
      if (needed && route.shares.empty()) {
        const auto name = [this](int end) {
          return one_node[static_cast<std::size_t>(vertex_of(end))].name;
        };
        refuse(to < gpu_count() ? "GPUs that reach each other without passing a third"
                                : "GPUs that reach a network adapter without passing another",
               name(from) + " to " + name(to) + " of " + design.name);
      }
    }
  }
}

void Cluster::Graph::build_host_routes() {
  to_host.resize(gpus.size());
  from_host.resize(gpus.size());
  std::vector<std::int64_t> nearest(gpus.size(), unreachable);
  for (VertexId cpu = 0; cpu < static_cast<VertexId>(design.vertices.size()); ++cpu) {
    if (one_node[static_cast<std::size_t>(cpu)].kind != VertexKind::cpu) continue;
    const std::vector<std::int64_t> distance = distances_to(cpu);
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
      const std::int64_t here = distance[static_cast<std::size_t>(gpus[gpu])];
      if (here >= nearest[gpu]) continue;
      nearest[gpu] = here;
      to_host[gpu] = find(gpus[gpu], cpu, distance);
      from_host[gpu] = find(cpu, gpus[gpu], distances_to(gpus[gpu]));
    }
  }
}

void Cluster::Graph::translate(const std::vector<Share>& shares, int node,
                               std::vector<Share>& to) const {
  const auto inside = static_cast<LinkId>(design.links.size());
  for (Share share : shares) {
    LinkId& link = share.direction.link;
    link = link < inside ? node * inside + link
                         : nodes * inside + node * nic_count() + (link - inside);
    to.push_back(share);
  }
}

bool Cluster::Graph::is_port(LinkId link) const {
  const auto first = nodes * static_cast<LinkId>(design.links.size());
  return link >= first && link < first + nodes * nic_count();
}

int Cluster::Graph::leaf_of(LinkId port) const {
  const LinkId number = port - nodes * static_cast<LinkId>(design.links.size());
  return fabric.leaf_of(number / nic_count(), number % nic_count());
}

void Cluster::Graph::cross(std::vector<Share>& shares) const {
  std::vector<std::pair<int, double>> entering;
  for (const auto& [direction, share] : shares) {
    if (is_port(direction.link))
      entering.emplace_back(leaf_of(direction.link), direction.forward ? share : -share);
  }
  const LinkId first =
      nodes * (static_cast<LinkId>(design.links.size()) + static_cast<LinkId>(nic_count()));
  for (const auto& [uplink, amount] : fabric.crossing(entering))
    shares.push_back({{.link = first + uplink, .forward = amount > 0}, std::abs(amount)});
}

Seconds Cluster::Graph::crossing_latency(const std::vector<Share>& shares) const {
  const auto leaf = [&](bool out) {
    const auto port = std::ranges::find_if(shares, [&](const Share& share) {
      return is_port(share.direction.link) && share.direction.forward == out;
    });
    return port == shares.end() ? 0 : leaf_of(port->direction.link);
  };
  return fabric.latency(leaf(true), leaf(false));
}

Cluster::Cluster(NodeDesign design, int nodes, FabricDesign fabric)
    : graph_(std::make_shared<const Graph>(std::move(design), nodes, std::move(fabric))) {}

Cluster::Cluster(NodeDesign design, int nodes, BytesPerSecond port, Seconds port_latency)
    : Cluster(std::move(design), nodes,
              FabricDesign{.speed = {.name = "",
                                     .port = port,
                                     .port_latency = port_latency,
                                     .switch_latency = {},
                                     .provenance = ""}}) {}

const NodeDesign& Cluster::design() const { return graph_->design; }
const Fabric& Cluster::fabric() const { return graph_->fabric; }
int Cluster::nodes() const { return graph_->nodes; }
int Cluster::gpus_per_node() const { return graph_->gpu_count(); }
int Cluster::gpus() const { return nodes() * gpus_per_node(); }
const std::vector<Vertex>& Cluster::vertices() const { return graph_->vertices; }
const std::vector<Link>& Cluster::links() const { return graph_->links; }

int Cluster::node_of(int gpu) const {
  expects(gpu >= 0 && gpu < gpus(), "a GPU of the cluster");
  return gpu / gpus_per_node();
}

std::vector<Share> Cluster::route(int from_gpu, int to_gpu) const {
  const int from_node = node_of(from_gpu);
  const int to_node = node_of(to_gpu);
  const int from = from_gpu % gpus_per_node();
  const int to = to_gpu % gpus_per_node();
  std::vector<Share> shares;
  if (from_node == to_node) {
    graph_->translate(graph_->between(from, to).shares, from_node, shares);
  } else {
    graph_->translate(graph_->between(from, graph_->fabric_end()).shares, from_node, shares);
    graph_->translate(graph_->between(graph_->fabric_end(), to).shares, to_node, shares);
  }
  graph_->cross(shares);
  return shares;
}

std::vector<Share> Cluster::route_between(int from_gpu, int from_nic, int to_gpu,
                                          int to_nic) const {
  std::vector<Share> shares = route_out(from_gpu, from_nic);
  const std::vector<Share> arriving = route_in(to_gpu, to_nic);
  shares.insert(shares.end(), arriving.begin(), arriving.end());
  graph_->cross(shares);
  return shares;
}

std::vector<Share> Cluster::route_out(int gpu, int nic) const {
  const int node = node_of(gpu);
  expects(nic >= 0 && nic < graph_->nic_count(), "an adapter of the node");
  std::vector<Share> local = graph_->between(gpu % gpus_per_node(), graph_->nic_end(nic)).shares;
  expects(!local.empty(), "an adapter that the GPU reaches within the node");
  local.push_back({graph_->port(nic, true), 1.0});
  std::vector<Share> shares;
  graph_->translate(local, node, shares);
  return shares;
}

std::vector<Share> Cluster::route_in(int gpu, int nic) const {
  const int node = node_of(gpu);
  expects(nic >= 0 && nic < graph_->nic_count(), "an adapter of the node");
  const int to = gpu % gpus_per_node();
  // Asked in the direction in which the search keeps out of the fabric.
  expects(!graph_->between(to, graph_->nic_end(nic)).shares.empty(),
          "an adapter that the GPU reaches within the node");
  std::vector<Share> shares;
  graph_->translate({{graph_->port(nic, false), 1.0}}, node, shares);
  graph_->translate(graph_->between(graph_->nic_end(nic), to).shares, node, shares);
  return shares;
}

std::vector<Share> Cluster::route_across(int from_node, int from_nic, int to_node,
                                         int to_nic) const {
  expects(from_node >= 0 && from_node < nodes() && to_node >= 0 && to_node < nodes(),
          "nodes of the cluster");
  std::vector<Share> ports;
  graph_->translate({{graph_->port(from_nic, true), 1.0}}, from_node, ports);
  graph_->translate({{graph_->port(to_nic, false), 1.0}}, to_node, ports);
  std::vector<Share> shares = ports;
  graph_->cross(shares);
  return {shares.begin() + static_cast<std::ptrdiff_t>(ports.size()), shares.end()};
}

std::vector<Share> Cluster::route_to_host(int gpu) const {
  expects(gpu >= 0 && gpu < gpus(), "a GPU of the cluster");
  std::vector<Share> shares;
  graph_->translate(graph_->to_host[gpu % gpus_per_node()].shares, node_of(gpu), shares);
  return shares;
}

std::vector<Share> Cluster::route_from_host(int gpu) const {
  expects(gpu >= 0 && gpu < gpus(), "a GPU of the cluster");
  std::vector<Share> shares;
  graph_->translate(graph_->from_host[gpu % gpus_per_node()].shares, node_of(gpu), shares);
  return shares;
}

std::vector<int> Cluster::nearest_nics(int gpu) const {
  expects(gpu >= 0 && gpu < gpus(), "a GPU of the cluster");
  const auto inside = static_cast<LinkId>(graph_->design.links.size());
  std::vector<int> nearest;
  for (const Share& share : graph_->between(gpu % gpus_per_node(), graph_->fabric_end()).shares) {
    if (share.direction.link >= inside) nearest.push_back(share.direction.link - inside);
  }
  std::sort(nearest.begin(), nearest.end());
  return nearest;
}

Seconds Cluster::latency(int from_gpu, int to_gpu) const {
  const int from = from_gpu % gpus_per_node();
  const int to = to_gpu % gpus_per_node();
  const Seconds crossing = graph_->crossing_latency(route(from_gpu, to_gpu));
  if (node_of(from_gpu) == node_of(to_gpu)) return graph_->between(from, to).latency + crossing;
  return graph_->between(from, graph_->fabric_end()).latency +
         graph_->between(graph_->fabric_end(), to).latency + crossing;
}

}  // namespace stratagem::topology

// The graph of a cluster. Routes of one node serve all nodes, and continue across the fabric.
#include "topology/cluster.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <utility>

#include "base/input_error.hpp"
#include "base/memo.hpp"
#include "topology/node_routes.hpp"

namespace stratagem::topology {

namespace {

int checked_nodes(int nodes) {
  if (nodes < 1) throw InputError("", "", "at least 1 node", std::to_string(nodes));
  return nodes;
}

int adapters(const NodeDesign& design) {
  return static_cast<int>(std::ranges::count(design.vertices, VertexKind::nic, &Vertex::kind));
}

}  // namespace

struct Cluster::Graph {
  int nodes = 1;
  NodeDesign design;
  Fabric fabric;
  NodeRoutes routes;
  std::vector<Vertex> vertices;  ///< of the whole cluster
  std::vector<Link> links;       ///< of the whole cluster

  Graph(NodeDesign node_design, int node_count, FabricDesign fabric_design);

  void build_cluster();
  void build_fabric();

  /// Appends local shares as those of node `node`.
  void translate(const std::vector<Share>& shares, int node, std::vector<Share>& to) const;
  /// The leaf that a port's adapter is cabled to; the link is the cluster's.
  [[nodiscard]] int leaf_of(LinkId port) const;
  [[nodiscard]] bool is_port(LinkId link) const;
  /// Appends what the messages of a route do within the fabric, from port to port.
  void cross(std::vector<Share>& shares) const;
  /// A part of a route on a server, up to the fabric or from it.
  struct Part {
    const NodeRoutes::Route* route;
    int node;
  };
  [[nodiscard]] Seconds latency(std::initializer_list<Part> parts) const;
  /// Of one node: a port's link is local.
  [[nodiscard]] Direction port(int nic, bool out) const {
    return {.link = static_cast<LinkId>(design.links.size()) + nic, .forward = out};
  }
};

Cluster::Graph::Graph(NodeDesign node_design, int node_count, FabricDesign fabric_design)
    : nodes(checked_nodes(node_count)),
      design(checked(std::move(node_design))),
      fabric(std::move(fabric_design), node_count, adapters(design)),
      routes(design, fabric.design().speed, node_count > 1) {
  build_cluster();
  build_fabric();
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
    for (int nic = 0; nic < routes.nics(); ++nic) {
      Link link = routes.ports()[static_cast<std::size_t>(nic)];
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

void Cluster::Graph::translate(const std::vector<Share>& shares, int node,
                               std::vector<Share>& to) const {
  const auto inside = static_cast<LinkId>(design.links.size());
  for (Share share : shares) {
    LinkId& link = share.direction.link;
    link = link < inside ? node * inside + link
                         : nodes * inside + node * routes.nics() + (link - inside);
    to.push_back(share);
  }
}

bool Cluster::Graph::is_port(LinkId link) const {
  const auto first = nodes * static_cast<LinkId>(design.links.size());
  return link >= first && link < first + nodes * routes.nics();
}

int Cluster::Graph::leaf_of(LinkId port) const {
  const LinkId number = port - nodes * static_cast<LinkId>(design.links.size());
  return fabric.leaf_of(number / routes.nics(), number % routes.nics());
}

void Cluster::Graph::cross(std::vector<Share>& shares) const {
  std::vector<std::pair<int, double>> entering;
  for (const auto& [direction, share] : shares) {
    if (is_port(direction.link))
      entering.emplace_back(leaf_of(direction.link), direction.forward ? share : -share);
  }
  const LinkId first =
      nodes * (static_cast<LinkId>(design.links.size()) + static_cast<LinkId>(routes.nics()));
  for (const auto& [uplink, amount] : fabric.crossing(entering))
    shares.push_back({{.link = first + uplink, .forward = amount > 0}, std::abs(amount)});
}

Seconds Cluster::Graph::latency(std::initializer_list<Part> parts) const {
  const auto inside = static_cast<LinkId>(design.links.size());
  Seconds sum;
  std::vector<std::pair<int, double>> entering;
  for (const auto& [route, node] : parts) {
    sum += route->latency;
    if (fabric.spines().groups == 0) continue;  // no switch after the first
    for (const auto& [direction, share] : route->shares) {
      if (direction.link >= inside)
        entering.emplace_back(fabric.leaf_of(node, direction.link - inside),
                              direction.forward ? share : -share);
    }
  }
  return sum + fabric.latency(fabric.crossing(entering));
}

std::shared_ptr<const Cluster::Graph> Cluster::graph_of(NodeDesign design, int nodes,
                                                        FabricDesign fabric) {
  constexpr std::size_t kept = 4;
  using Key = std::tuple<NodeDesign, int, FabricDesign>;
  static Memo<Key, Graph> known(kept);
  const Key key(std::move(design), nodes, std::move(fabric));
  return known.of(key, [&] { return std::make_from_tuple<Graph>(key); });
}

Cluster::Cluster(NodeDesign design, int nodes, FabricDesign fabric)
    : graph_(graph_of(std::move(design), nodes, std::move(fabric))) {}

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
int Cluster::gpus_per_node() const { return graph_->routes.gpus(); }
int Cluster::gpus() const { return nodes() * gpus_per_node(); }
int Cluster::nics_per_node() const { return graph_->routes.nics(); }
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
    graph_->translate(graph_->routes.between(from, to).shares, from_node, shares);
  } else {
    graph_->translate(graph_->routes.between(from, graph_->routes.fabric_end()).shares, from_node,
                      shares);
    graph_->translate(graph_->routes.between(graph_->routes.fabric_end(), to).shares, to_node,
                      shares);
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
  expects(nic >= 0 && nic < graph_->routes.nics(), "an adapter of the node");
  std::vector<Share> local =
      graph_->routes.between(gpu % gpus_per_node(), graph_->routes.nic_end(nic)).shares;
  expects(!local.empty(), "an adapter that the GPU reaches within the node");
  local.push_back({graph_->port(nic, true), 1.0});
  std::vector<Share> shares;
  graph_->translate(local, node, shares);
  return shares;
}

std::vector<Share> Cluster::route_in(int gpu, int nic) const {
  const int node = node_of(gpu);
  expects(nic >= 0 && nic < graph_->routes.nics(), "an adapter of the node");
  const int to = gpu % gpus_per_node();
  // Asked in the direction in which the search keeps out of the fabric.
  expects(!graph_->routes.between(to, graph_->routes.nic_end(nic)).shares.empty(),
          "an adapter that the GPU reaches within the node");
  std::vector<Share> shares;
  graph_->translate({{graph_->port(nic, false), 1.0}}, node, shares);
  graph_->translate(graph_->routes.between(graph_->routes.nic_end(nic), to).shares, node, shares);
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
  graph_->translate(graph_->routes.to_host(gpu % gpus_per_node()).shares, node_of(gpu), shares);
  return shares;
}

std::vector<Share> Cluster::route_from_host(int gpu) const {
  expects(gpu >= 0 && gpu < gpus(), "a GPU of the cluster");
  std::vector<Share> shares;
  graph_->translate(graph_->routes.from_host(gpu % gpus_per_node()).shares, node_of(gpu), shares);
  return shares;
}

std::vector<Share> Cluster::route_to_drives(int gpu) const {
  expects(gpu >= 0 && gpu < gpus(), "a GPU of the cluster");
  std::vector<Share> shares;
  graph_->translate(graph_->routes.to_drives(gpu % gpus_per_node()).shares, node_of(gpu), shares);
  return shares;
}

std::vector<Share> Cluster::route_from_drives(int gpu) const {
  expects(gpu >= 0 && gpu < gpus(), "a GPU of the cluster");
  std::vector<Share> shares;
  graph_->translate(graph_->routes.from_drives(gpu % gpus_per_node()).shares, node_of(gpu), shares);
  return shares;
}

std::vector<int> Cluster::nearest_nics(int gpu) const {
  expects(gpu >= 0 && gpu < gpus(), "a GPU of the cluster");
  const auto inside = static_cast<LinkId>(graph_->design.links.size());
  std::vector<int> nearest;
  for (const Share& share :
       graph_->routes.between(gpu % gpus_per_node(), graph_->routes.fabric_end()).shares) {
    if (share.direction.link >= inside) nearest.push_back(share.direction.link - inside);
  }
  std::sort(nearest.begin(), nearest.end());
  return nearest;
}

BytesPerSecond Cluster::bandwidth(int from_gpu, int to_gpu) const {
  BytesPerSecond least{std::numeric_limits<double>::infinity()};
  for (const Share& part : route(from_gpu, to_gpu)) {
    const Link& link = links()[part.direction.link];
    least = std::min(least, link.toward(part.direction.forward) / part.share);
  }
  return least;
}

Seconds Cluster::latency(int from_gpu, int to_gpu) const {
  const NodeRoutes& routes = graph_->routes;
  const int from_node = node_of(from_gpu);
  const int to_node = node_of(to_gpu);
  const int from = from_gpu % gpus_per_node();
  const int to = to_gpu % gpus_per_node();
  if (from_node == to_node) return graph_->latency({{&routes.between(from, to), from_node}});
  return graph_->latency({{&routes.between(from, routes.fabric_end()), from_node},
                          {&routes.between(routes.fabric_end(), to), to_node}});
}

Seconds Cluster::latency_between(int from_gpu, int from_nic, int to_gpu, int to_nic) const {
  const NodeRoutes& routes = graph_->routes;
  const auto to_switch = [&](int gpu, int nic) {
    return routes.between(gpu % gpus_per_node(), routes.nic_end(nic)).latency +
           routes.ports()[static_cast<std::size_t>(nic)].latency;
  };
  const Fabric& fabric = graph_->fabric;
  const auto crossing = fabric.crossing({{fabric.leaf_of(node_of(from_gpu), from_nic), 1.0},
                                         {fabric.leaf_of(node_of(to_gpu), to_nic), -1.0}});
  return to_switch(from_gpu, from_nic) + to_switch(to_gpu, to_nic) + fabric.latency(crossing);
}

Seconds Cluster::latency_to_host(int gpu) const {
  return graph_->routes.to_host(gpu % gpus_per_node()).latency;
}

Seconds Cluster::latency_to_drives(int gpu) const {
  return graph_->routes.to_drives(gpu % gpus_per_node()).latency;
}

}  // namespace stratagem::topology

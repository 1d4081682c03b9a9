// Dijkstra's search from every end, and the division of messages over what it finds.
#include "topology/node_routes.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
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
    case LinkKind::memory:  // the two never stand in one server
      return 1'000;
    case LinkKind::pcie:
    case LinkKind::drive:
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

std::vector<Link> ports_of(const NodeDesign& design, const NetworkSpeed& network) {
  std::vector<Link> ports;
  const auto fabric = static_cast<VertexId>(design.vertices.size());
  for (VertexId vertex = 0; vertex < fabric; ++vertex) {
    if (design.vertices[static_cast<std::size_t>(vertex)].kind != VertexKind::nic) continue;
    ports.push_back({.a = vertex,
                     .b = fabric,
                     .kind = LinkKind::network,
                     .count = 1,
                     .bandwidth = network.port,
                     .latency = network.port_latency});
  }
  return ports;
}

}  // namespace

/// One node and the fabric as a graph.
class NodeRoutes::Search {
 public:
  Search(const NodeDesign& design, const std::vector<Link>& ports)
      : design_(design), vertices_(design.vertices), links_(design.links) {
    vertices_.push_back({.kind = VertexKind::fabric, .node = -1, .index = 0, .name = "fabric"});
    links_.insert(links_.end(), ports.begin(), ports.end());
    for (VertexId vertex = 0; vertex < fabric(); ++vertex) {
      if (is_rank(kind(vertex))) gpus_.push_back(vertex);
      if (kind(vertex) == VertexKind::nic) nics_.push_back(vertex);
    }
    adjacency_ = Adjacency(vertices_.size());
    for (std::size_t link = 0; link < links_.size(); ++link) {
      const Link& cable = links_[link];
      boost::add_edge(static_cast<std::size_t>(cable.a), static_cast<std::size_t>(cable.b),
                      Cable{.link = static_cast<LinkId>(link), .weight = weight(cable.kind)},
                      adjacency_);
    }
  }

  [[nodiscard]] const NodeDesign& design() const { return design_; }
  [[nodiscard]] const Vertex& vertex(VertexId id) const {
    return vertices_[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] VertexId vertex_of(int end) const {
    const auto place = static_cast<std::size_t>(end);
    if (place < gpus_.size()) return gpus_[place];
    return place < gpus_.size() + nics_.size() ? nics_[place - gpus_.size()] : fabric();
  }
  [[nodiscard]] int gpus() const { return static_cast<int>(gpus_.size()); }

  /// By vertex, the sum of weights from there to the target.
  [[nodiscard]] std::vector<std::int64_t> distances_to(VertexId target) const;
  [[nodiscard]] Route find(VertexId from, VertexId to,
                           const std::vector<std::int64_t>& distance) const;

 private:
  struct Step {
    LinkId link = 0;
    VertexId to = 0;
  };

  /// The links on shortest paths from one vertex, in order.
  [[nodiscard]] std::vector<Step> steps_towards(VertexId target, VertexId from,
                                                const std::vector<std::int64_t>& distance) const;
  [[nodiscard]] VertexId fabric() const { return static_cast<VertexId>(vertices_.size()) - 1; }
  [[nodiscard]] VertexKind kind(VertexId id) const { return vertex(id).kind; }
  /// Whether a path towards `target` may lead on through `vertex`.
  [[nodiscard]] bool leads_on(VertexId vertex, VertexId target) const {
    if (is_rank(kind(vertex)) || kind(vertex) == VertexKind::drive) return false;
    return kind(vertex) != VertexKind::fabric || kind(target) != VertexKind::nic;
  }

  const NodeDesign& design_;
  std::vector<Vertex> vertices_;
  std::vector<Link> links_;
  std::vector<VertexId> gpus_;
  std::vector<VertexId> nics_;
  Adjacency adjacency_;
};

std::vector<std::int64_t> NodeRoutes::Search::distances_to(VertexId target) const {
  // Dijkstra starts at the target and leaves a vertex only where a path may lead through it.
  const auto may_leave = [this, target](const Adjacency::edge_descriptor& edge) {
    const auto vertex = static_cast<VertexId>(boost::source(edge, adjacency_));
    return vertex == target || leads_on(vertex, target);
  };
  const boost::filtered_graph<Adjacency, std::function<bool(const Adjacency::edge_descriptor&)>>
      usable(adjacency_, may_leave);
  const auto index = boost::get(boost::vertex_index, adjacency_);
  std::vector<std::int64_t> distance(vertices_.size(), unreachable);
  std::vector<boost::default_color_type> colours(vertices_.size());
  boost::dijkstra_shortest_paths(
      usable, static_cast<std::size_t>(target), boost::dummy_property_map(),
      boost::make_iterator_property_map(distance.begin(), index),
      boost::get(&Cable::weight, usable), index, std::less<>(), std::plus<>(), unreachable,
      std::int64_t{0}, boost::default_dijkstra_visitor(),
      boost::make_iterator_property_map(colours.begin(), index));
  return distance;
}

std::vector<NodeRoutes::Search::Step> NodeRoutes::Search::steps_towards(
    VertexId target, VertexId from, const std::vector<std::int64_t>& distance) const {
  std::vector<Step> steps;
  const auto edges = boost::out_edges(static_cast<std::size_t>(from), adjacency_);
  for (auto edge = edges.first; edge != edges.second; ++edge) {
    const Cable& cable = adjacency_[*edge];
    const auto next = static_cast<VertexId>(boost::target(*edge, adjacency_));
    if (next != target && !leads_on(next, target)) continue;
    if (distance[static_cast<std::size_t>(next)] ==
        distance[static_cast<std::size_t>(from)] - cable.weight)
      steps.push_back({.link = cable.link, .to = next});
  }
  std::ranges::sort(steps, {}, &Step::link);
  return steps;
}

NodeRoutes::Route NodeRoutes::Search::find(VertexId from, VertexId to,
                                           const std::vector<std::int64_t>& distance) const {
  const auto remaining = [&distance](VertexId id) {
    return distance[static_cast<std::size_t>(id)];
  };
  Route route;
  if (remaining(from) == unreachable) return route;

  struct Arrived {
    double share = 0;
    Seconds latency;  ///< of the part that was longest on its way
  };
  // What has arrived where, the farthest vertex first: all that flows into it has arrived by then.
  std::map<std::pair<std::int64_t, VertexId>, Arrived> arrived{{{-remaining(from), from}, {1, {}}}};
  while (!arrived.empty()) {
    const VertexId vertex = arrived.begin()->first.second;
    const auto [share, latency] = arrived.begin()->second;
    arrived.erase(arrived.begin());
    if (vertex == to) {
      route.latency = latency;
      continue;
    }
    const std::vector<Step> steps = steps_towards(to, vertex, distance);
    BytesPerSecond total;
    for (const Step step : steps) total += links_[static_cast<std::size_t>(step.link)].bandwidth;
    for (const Step step : steps) {
      const Link& link = links_[static_cast<std::size_t>(step.link)];
      const double part = share * (link.bandwidth / total);
      route.shares.push_back({{.link = step.link, .forward = link.a == vertex}, part});
      Arrived& there = arrived[{-remaining(step.to), step.to}];
      there.share += part;
      there.latency = std::max(there.latency, latency + link.latency);
    }
  }
  return route;
}

NodeRoutes::NodeRoutes(const NodeDesign& design, const NetworkSpeed& network, bool leaves_node)
    : ports_(ports_of(design, network)) {
  const Search search(design, ports_);
  gpus_ = search.gpus();
  if (gpus_ == 0) throw InputError("", "", "a node design with at least 1 GPU", design.name);
  find_routes(search, leaves_node);
  find_host_routes(search);
}

void NodeRoutes::find_routes(const Search& search, bool leaves_node) {
  const int ends = fabric_end() + 1;
  routes_.resize(static_cast<std::size_t>(ends) * ends);
  for (int to = 0; to < ends; ++to) {
    const std::vector<std::int64_t> distance = search.distances_to(search.vertex_of(to));
    for (int from = 0; from < ends; ++from) {
      if (from == to || (from >= gpus_ && to >= gpus_)) continue;
      Route& route = routes_[static_cast<std::size_t>(from) * ends + to];
      route = search.find(search.vertex_of(from), search.vertex_of(to), distance);
      const bool needed = from < gpus_ && (to < gpus_ || (to == fabric_end() && leaves_node));
      if (needed && route.shares.empty()) {
        const auto name = [&](int end) { return search.vertex(search.vertex_of(end)).name; };
        throw InputError("", "",
                         to < gpus_ ? "GPUs that reach each other without passing a third"
                                    : "GPUs that reach a network adapter without passing another",
                         name(from) + " to " + name(to) + " of " + search.design().name);
      }
    }
  }
}

void NodeRoutes::find_host_routes(const Search& search) {
  const auto gpus = static_cast<std::size_t>(gpus_);
  to_host_.resize(gpus);
  from_host_.resize(gpus);
  to_drives_.resize(gpus);
  from_drives_.resize(gpus);
  if (search.design().on_processors()) return;  // such a rank has no other memory
  std::vector<std::int64_t> nearest(gpus, unreachable);
  std::vector<VertexId> processors(gpus, -1);
  for (VertexId cpu = 0; cpu < static_cast<VertexId>(search.design().vertices.size()); ++cpu) {
    if (search.vertex(cpu).kind != VertexKind::cpu) continue;
    const std::vector<std::int64_t> distance = search.distances_to(cpu);
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
      const VertexId at = search.vertex_of(static_cast<int>(gpu));
      const std::int64_t here = distance[static_cast<std::size_t>(at)];
      if (here >= nearest[gpu]) continue;
      nearest[gpu] = here;
      processors[gpu] = cpu;
      to_host_[gpu] = search.find(at, cpu, distance);
      from_host_[gpu] = search.find(cpu, at, search.distances_to(at));
    }
  }
  find_drive_routes(search, processors);
}

/// `processors`: by GPU, -1 where there is none. Drives are alike, so their shares are equal.
void NodeRoutes::find_drive_routes(const Search& search, const std::vector<VertexId>& processors) {
  const std::vector<Vertex>& vertices = search.design().vertices;
  const auto drives =
      static_cast<double>(std::ranges::count(vertices, VertexKind::drive, &Vertex::kind));
  const auto add = [drives](Route& route, const Route& part) {
    for (const Share& share : part.shares)
      route.shares.push_back({share.direction, share.share / drives});
    route.latency = std::max(route.latency, part.latency);
  };
  for (VertexId drive = 0; drive < static_cast<VertexId>(vertices.size()); ++drive) {
    if (vertices[drive].kind != VertexKind::drive) continue;
    const std::vector<std::int64_t> to_drive = search.distances_to(drive);
    for (std::size_t gpu = 0; gpu < processors.size(); ++gpu) {
      if (processors[gpu] < 0) continue;
      add(to_drives_[gpu], search.find(processors[gpu], drive, to_drive));
      add(from_drives_[gpu],
          search.find(drive, processors[gpu], search.distances_to(processors[gpu])));
    }
  }
}

}  // namespace stratagem::topology

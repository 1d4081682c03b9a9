// Names of vertices and links, and what a design must fulfil.
#include "topology/node_design.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/input_error.hpp"
#include "topology/refuse.hpp"

namespace stratagem::topology {

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
    case VertexKind::cpu_rank:
      return "CPU rank";
    case VertexKind::drive:
      return "drive";
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
    case LinkKind::memory:
      return "memory";
    case LinkKind::drive:
      return "drive";
  }
  expects(false, "every kind of link has a name");
  return {};
}

bool is_rank(VertexKind kind) { return kind == VertexKind::gpu || kind == VertexKind::cpu_rank; }

bool NodeDesign::on_processors() const {
  return std::ranges::find(vertices, VertexKind::cpu_rank, &Vertex::kind) != vertices.end();
}

int NodeDesign::ranks() const {
  return static_cast<int>(std::ranges::count_if(vertices, is_rank, &Vertex::kind));
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

namespace {

/// Every drive has one link, from itself to a PCIe switch or a processor.
void check_drives(const NodeDesign& design) {
  const auto kind_of = [&](VertexId id) { return design.vertices[id].kind; };
  std::vector<int> links(design.vertices.size());
  for (const Link& link : design.links) {
    const bool at_drive = kind_of(link.a) == VertexKind::drive;
    const bool leads_on =
        kind_of(link.b) == VertexKind::cpu || kind_of(link.b) == VertexKind::pcie_switch;
    const bool joins_one = at_drive || kind_of(link.b) == VertexKind::drive;
    if (joins_one != (link.kind == LinkKind::drive) || (joins_one && !(at_drive && leads_on)))
      refuse("links of drives from a drive to a PCIe switch or a processor",
             design.vertices[link.a].name + " - " + design.vertices[link.b].name);
    if (at_drive) ++links[link.a];
  }
  bool any = false;
  for (std::size_t id = 0; id < links.size(); ++id) {
    if (design.vertices[id].kind != VertexKind::drive) continue;
    any = true;
    if (links[id] != 1) refuse("drives with one link each", design.vertices[id].name);
  }
  if (any != design.drives.has_value()) refuse("drives and what they are", design.name);
}

}  // namespace

NodeDesign checked(NodeDesign design) {
  const auto positive = [](BytesPerSecond rate) {
    return std::isfinite(rate.value) && rate.value > 0;
  };
  const auto duration = [](Seconds time) { return std::isfinite(time.value) && time.value >= 0; };
  const auto size = static_cast<int>(design.vertices.size());
  for (const Vertex& vertex : design.vertices) {
    if (vertex.kind == VertexKind::fabric) refuse("a node design without a fabric", vertex.name);
  }
  const auto gpu = std::ranges::find(design.vertices, VertexKind::gpu, &Vertex::kind);
  if (design.on_processors() && gpu != design.vertices.end())
    refuse("ranks on GPUs or on processors, not both", design.name);
  const auto kind_of = [&](VertexId id) { return design.vertices[id].kind; };
  for (const Link& link : design.links) {
    const std::string text = "link " + std::to_string(link.a) + " - " + std::to_string(link.b);
    if (link.a < 0 || link.a >= size || link.b < 0 || link.b >= size || link.a == link.b) {
      refuse("links between two vertices of the node", text);
    }
    if (link.count < 1) refuse("links of at least 1 cable", text);
    if (!positive(link.bandwidth) || !positive(link.toward(false)))
      refuse("links with a bandwidth above 0", text);
    if (!duration(link.latency)) refuse("links with a latency of 0 or more", text);
    const std::set<VertexKind> ends{kind_of(link.a), kind_of(link.b)};
    if (link.kind == LinkKind::memory && ends != std::set{VertexKind::cpu, VertexKind::cpu_rank})
      refuse("memory links between a rank and its processor", text);
  }
  check_drives(design);
  return design;
}

NodeDesign divided(const NodeDesign& design, int ranks) {
  const int shares = design.ranks();
  if (!design.on_processors()) refuse("a server whose ranks are processors", design.name);
  if (ranks < shares || ranks % shares != 0) {
    refuse("a multiple of the " + std::to_string(shares) + " ranks of " + design.name,
           std::to_string(ranks));
  }
  const int parts = ranks / shares;
  if (parts == 1) return design;
  NodeDesign result = design;
  result.vertices.clear();
  result.links.clear();
  std::vector<std::vector<VertexId>> become;  // by vertex
  for (const Vertex& vertex : design.vertices) {
    const bool share = vertex.kind == VertexKind::cpu_rank;
    become.emplace_back();
    for (int part = 0; part < (share ? parts : 1); ++part) {
      const std::string name = "rank" + std::to_string(vertex.index * parts + part);
      become.back().push_back(result.add(vertex.kind, share ? name : vertex.name));
    }
  }
  for (const Link& link : design.links) {
    const auto cut = static_cast<double>(become[link.a].size() * become[link.b].size());
    for (const VertexId a : become[link.a]) {
      for (const VertexId b : become[link.b])
        result.join(a, b, link.kind, link.count, link.bandwidth / (cut * link.count), link.latency);
    }
  }
  return result;
}

}  // namespace stratagem::topology

// Names of vertices and links, and what a design must fulfil.
#include "topology/node_design.hpp"

#include <algorithm>
#include <cmath>

#include "base/input_error.hpp"

namespace stratagem::topology {

namespace {

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
  throw InputError("", "", expected, found);
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

NodeDesign checked(NodeDesign design) {
  const auto positive = [](BytesPerSecond rate) {
    return std::isfinite(rate.value) && rate.value > 0;
  };
  const auto duration = [](Seconds time) { return std::isfinite(time.value) && time.value >= 0; };
  const auto size = static_cast<int>(design.vertices.size());
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

}  // namespace stratagem::topology

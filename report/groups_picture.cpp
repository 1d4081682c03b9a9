// Draws vertices in rows by kind, and links in the colours of their groups.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/html_text.hpp"
#include "report/groups.hpp"

namespace stratagem::report {
namespace {

using topology::Cluster;
using topology::LinkId;
using topology::VertexId;
using topology::VertexKind;

/// Told apart by people with any colour vision (Okabe and Ito, 2008).
constexpr std::array<std::string_view, 7> colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                     "#E69F00", "#56B4E9", "#000000"};
constexpr std::string_view unused = "#DDDDDD";

/// A group's bytes on a link, both directions together.
struct Line {
  std::size_t group = 0;
  Bytes bytes;
};

/// What a picture shows: some servers, and on each of their links the groups that use it.
struct Scene {
  std::vector<VertexId> vertices;
  std::map<LinkId, std::vector<Line>> links;
};

Scene scene_of(const std::vector<GroupLinks>& groups, const Cluster& cluster) {
  constexpr int shown = 2;  // servers: the others are the same
  Scene scene;
  const auto in = [&](VertexId id) { return cluster.vertices()[id].node < shown; };
  for (VertexId id = 0; id < static_cast<VertexId>(cluster.vertices().size()); ++id) {
    if (in(id)) scene.vertices.push_back(id);
  }
  for (LinkId id = 0; id < static_cast<LinkId>(cluster.links().size()); ++id) {
    if (in(cluster.links()[id].a) && in(cluster.links()[id].b)) scene.links[id] = {};
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::map<LinkId, Bytes> bytes;
    for (const auto& [direction, on_it] : groups[g].bytes) bytes[direction.link] += on_it;
    for (const auto& [link, on_it] : bytes) {
      if (const auto found = scene.links.find(link); found != scene.links.end())
        found->second.push_back({g, on_it});
    }
  }
  return scene;
}

std::string_view colour_of(std::size_t group) { return colours[group % colours.size()]; }

/// Twice as wide for every hundredfold of a megabyte.
double width_of(Bytes bytes) { return 1 + std::max(0.0, std::log10(bytes.value / 1e6)); }

struct Point {
  double x = 0;
  double y = 0;
};

constexpr std::array kinds_from_top = {
    VertexKind::fabric, VertexKind::nic,       VertexKind::cpu,  VertexKind::pcie_switch,
    VertexKind::gpu,    VertexKind::nv_switch, VertexKind::drive};

/// Rows from the network at the top to NVSwitches and drives at the bottom, servers side by side.
std::map<VertexId, Point> layout(const Scene& scene, const Cluster& cluster, double server_width) {
  std::map<std::pair<int, VertexKind>, std::vector<VertexId>> by_row;
  for (const VertexId id : scene.vertices) {
    const topology::Vertex& vertex = cluster.vertices()[id];
    const VertexKind row = topology::is_rank(vertex.kind) ? VertexKind::gpu : vertex.kind;
    by_row[{vertex.node, row}].push_back(id);
  }
  std::map<VertexId, Point> places;
  const int servers = std::min(cluster.nodes(), 2);
  for (const auto& [key, row] : by_row) {
    const auto y = std::ranges::find(kinds_from_top, key.second) - kinds_from_top.begin();
    const double left = key.first < 0 ? 0 : key.first * server_width;
    const double width = key.first < 0 ? servers * server_width : server_width;
    for (std::size_t i = 0; i < row.size(); ++i) {
      places[row[i]] = {
          left + width * (static_cast<double>(i) + 0.5) / static_cast<double>(row.size()),
          60.0 + 110 * static_cast<double>(y)};
    }
  }
  return places;
}

void draw_line(std::string& svg, const Point& a, const Point& b, double offset,
               std::string_view colour, double width, const std::string& title) {
  svg += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"{:.1f}\"><title>{}</title></line>\n",
      a.x + offset, a.y, b.x + offset, b.y, colour, width, title);
}

void draw_links(std::string& svg, const std::vector<GroupLinks>& groups, const Scene& scene,
                const Cluster& cluster, const std::map<VertexId, Point>& places) {
  for (const auto& [id, lines] : scene.links) {
    const Point& a = places.at(cluster.links()[id].a);
    const Point& b = places.at(cluster.links()[id].b);
    if (lines.empty()) draw_line(svg, a, b, 0, unused, 1, "unused");
    for (std::size_t i = 0; i < lines.size(); ++i) {
      draw_line(svg, a, b, 3.0 * static_cast<double>(i), colour_of(lines[i].group),
                width_of(lines[i].bytes),
                fmt::format("{}: {:.4g} MB an iteration", groups[lines[i].group].what,
                            lines[i].bytes.value / 1e6));
    }
  }
}

}  // namespace

std::string groups_dot(const std::vector<GroupLinks>& groups, const Cluster& cluster) {
  const Scene scene = scene_of(groups, cluster);
  std::string dot = "graph groups {\n  node [shape=box];\n";
  for (const VertexId id : scene.vertices)
    dot += fmt::format("  v{} [label=\"{}\"];\n", id, cluster.vertices()[id].name);
  for (const auto& [id, lines] : scene.links) {
    const topology::Link& link = cluster.links()[id];
    if (lines.empty()) dot += fmt::format("  v{} -- v{} [color=\"{}\"];\n", link.a, link.b, unused);
    for (const Line& line : lines) {
      dot +=
          fmt::format("  v{} -- v{} [color=\"{}\", penwidth={:.1f}, tooltip=\"{}\"];\n", link.a,
                      link.b, colour_of(line.group), width_of(line.bytes), groups[line.group].what);
    }
  }
  return dot + "}\n";
}

std::string groups_svg(const std::vector<GroupLinks>& groups, const Cluster& cluster) {
  const Scene scene = scene_of(groups, cluster);
  const double server_width = 120.0 * std::max(cluster.gpus_per_node(), 4);
  const std::map<VertexId, Point> places = layout(scene, cluster, server_width);
  const double width = server_width * std::min(cluster.nodes(), 2);
  const bool drives = cluster.design().drives.has_value();
  const double legend = 60.0 + 110 * static_cast<double>(kinds_from_top.size() - (drives ? 0 : 1));
  const double height = legend + 24 * static_cast<double>(groups.size()) + 20;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n",
      width, height);
  draw_links(svg, groups, scene, cluster, places);
  for (const VertexId id : scene.vertices) {
    const Point& at = places.at(id);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"100\" height=\"22\" fill=\"white\" "
        "stroke=\"black\"/>\n<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        at.x - 50, at.y - 11, at.x, at.y + 4, html_text(cluster.vertices()[id].name));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    svg +=
        fmt::format("<text x=\"20\" y=\"{:.0f}\" fill=\"{}\">{}</text>\n",
                    legend + 24 * static_cast<double>(g), colour_of(g), html_text(groups[g].what));
  }
  return svg + "</svg>\n";
}

}  // namespace stratagem::report

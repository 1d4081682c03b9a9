// Writes node files: a line for each kind of vertex and for each group of equal links.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.hpp"
#include "topology/drives.hpp"
#include "topology/measured_collectives.hpp"
#include "topology/node_file.hpp"
#include "topology/node_words.hpp"

namespace stratagem::topology {

namespace {

/// Exact, in units that people read: values are whole picoseconds and kilobytes per second, or
/// nearly.
std::string exact(BytesPerSecond rate) {
  return fmt::format("{} GB/s", static_cast<double>(rate.value / 1e9L));
}
std::string exact(Seconds time) {
  return fmt::format("{} ns", static_cast<double>(time.value * 1e9L));
}

std::string vertices_text(const NodeDesign& design) {
  std::vector<std::string> rows;
  for (const auto& [word, kind] : vertex_words) {
    Json names = Json::array();
    bool any = false;
    for (const Vertex& vertex : design.vertices) {
      if (vertex.kind != kind) continue;
      names.push(vertex.name);
      any = true;
    }
    if (any) rows.push_back(fmt::format("    \"{}\": {}", word, names.text()));
  }
  return fmt::format("  \"vertices\": {{\n{}\n  }}", fmt::join(rows, ",\n"));
}

/// Equal links that follow each other are one group; eight pairs a line.
std::string group_text(const NodeDesign& design, std::size_t first, std::size_t last) {
  const auto name = [&design](VertexId id) {
    return design.vertices[static_cast<std::size_t>(id)].name;
  };
  constexpr std::size_t per_line = 8;
  std::string pairs;
  for (std::size_t i = first; i < last; ++i) {
    const Link& link = design.links[i];
    if (i > first) pairs += (i - first) % per_line == 0 ? ",\n        " : ", ";
    pairs += Json::array().push(name(link.a)).push(name(link.b)).text();
  }
  const Link& link = design.links[first];
  return fmt::format(
      "    {{\"kind\": \"{}\", \"count\": {}, \"bandwidth\": \"{}\", \"latency\": \"{}\",\n"
      "      \"pairs\": [\n        {}\n      ]}}",
      word_of(link_words, link.kind), link.count, exact(link.bandwidth / link.count),
      exact(link.latency), pairs);
}

std::string links_text(const NodeDesign& design) {
  const auto alike = [](const Link& x, const Link& y) {
    return x.kind == y.kind && x.count == y.count && x.bandwidth == y.bandwidth &&
           x.latency == y.latency;
  };
  std::vector<std::string> groups;
  for (std::size_t first = 0, last = 0; first < design.links.size(); first = last) {
    while (last < design.links.size() && alike(design.links[first], design.links[last])) ++last;
    if (design.links[first].kind == LinkKind::drive) continue;
    groups.push_back(group_text(design, first, last));
  }
  return fmt::format("  \"links\": [\n{}\n  ]", fmt::join(groups, ",\n"));
}

/// With a place for every drive.
std::string drives_json(const NodeDesign& design) {
  const Drives& drives = *design.drives;
  Json at = Json::array();
  for (const Link& link : design.links) {
    if (link.kind == LinkKind::drive) at.push(design.vertices[link.b].name);
  }
  std::string text = fmt::format(
      "  \"drives\": {{\"count\": {}, \"capacity\": \"{} GB\", \"read\": \"{}\", \"write\": "
      "\"{}\",\n    \"at\": {}",
      drive_count(design), drives.capacity / 1_GB, exact(drives.read), exact(drives.write),
      at.text());
  if (drives.provenance != "the user's")
    text += ",\n    \"provenance\": " + Json(drives.provenance).text();
  if (!drives.source.empty()) text += ",\n    \"source\": " + Json(drives.source).text();
  return text + "}";
}

std::string measured_text(std::string_view key, const std::vector<MeasuredCollective>& measured) {
  std::vector<std::string> rows;
  for (const MeasuredCollective& one : measured) {
    rows.push_back(fmt::format(
        R"(    {{"servers": {}, "payload": "{} MB", "bus_bandwidth": "{}", "source": {}}})",
        one.servers, one.payload / 1_MB, exact(one.bus_bandwidth), Json(one.source).text()));
  }
  return fmt::format("  \"{}\": [\n{}\n  ]", key, fmt::join(rows, ",\n"));
}

std::string port_text(const NetworkSpeed& port) {
  if (!port.name.empty()) return Json(port.name).text();
  return fmt::format(R"({{"bandwidth": "{}", "latency": "{}", "switch_latency": "{}"}})",
                     exact(port.port), exact(port.port_latency), exact(port.switch_latency));
}

}  // namespace

std::string node_text(const NodeFile& node) {
  std::vector<std::string> parts{"  \"name\": " + Json(node.design.name).text(),
                                 "  \"gpu\": " + Json(node.design.gpu).text()};
  if (node.design.compute_capability > 0) {
    parts.push_back(
        fmt::format("  \"compute_capability\": {:.1f}", node.design.compute_capability / 10.0));
  }
  if (node.design.processor != Processor::unknown) {
    parts.push_back("  \"processor\": " +
                    Json(word_of(processor_words, node.design.processor)).text());
  }
  if (node.design.host_memory)
    parts.push_back(fmt::format("  \"host_memory\": \"{} GiB\"", *node.design.host_memory / 1_GiB));
  if (!node.source.empty()) parts.push_back("  \"source\": " + Json(node.source).text());
  if (node.port) parts.push_back("  \"port\": " + port_text(*node.port));
  parts.push_back(vertices_text(node.design));
  if (!node.design.links.empty()) parts.push_back(links_text(node.design));
  if (node.design.drives) parts.push_back(drives_json(node.design));
  for (const MeasuredKind& kind : measured_kinds) {
    const auto& list = node.design.measured.*kind.list;
    if (!list.empty()) parts.push_back(measured_text(kind.key, list));
  }
  return fmt::format("{{\n{}\n}}\n", fmt::join(parts, ",\n"));
}

}  // namespace stratagem::topology

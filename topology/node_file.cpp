// Reads node files.
#include "topology/node_file.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "topology/drives.hpp"
#include "topology/measured_collectives.hpp"
#include "topology/node_words.hpp"

namespace stratagem::topology {

namespace {

using Names = std::map<std::string, VertexId>;

/// `"gpu": 8` are gpu0 to gpu7; `"gpu": ["left", "right"]` are named.
std::vector<std::string> read_names(const JsonReader& reader, const std::string& kind) {
  constexpr int most = 4096;
  std::vector<std::string> names;
  if (reader.is_array()) {
    for (const JsonReader& name : reader.elements()) names.push_back(name.text());
  } else {
    const auto count = static_cast<int>(reader.between(0, most));
    for (int i = 0; i < count; ++i) names.push_back(kind + std::to_string(i));
  }
  return names;
}

Names read_vertices(const JsonReader& reader, NodeDesign& design) {
  Names ids;
  for (const std::string& key : reader.keys()) {
    check_word(reader, key, words(vertex_words), "a kind of vertex");
    const JsonReader list = reader.at(key);
    for (const std::string& name : read_names(list, key)) {
      if (!ids.emplace(name, design.add(kind_of(vertex_words, key), name)).second)
        list.fail("names that no vertex before it has", '"' + name + '"');
    }
  }
  return ids;
}

/// What communication libraries judge a server by, and the memory of its processors, where it is
/// known.
void read_facts(const JsonReader& reader, NodeDesign& design) {
  if (const auto capability = reader.find("compute_capability"))
    design.compute_capability = read_compute_capability(*capability);
  if (const auto processor = reader.find("processor"))
    design.processor = kind_of(processor_words, processor->one_of(words(processor_words)));
  if (const auto memory = reader.find("host_memory")) {
    design.host_memory = memory->quantity<Bytes>();
    if (*design.host_memory < Bytes{}) memory->fail("a size of 0 or more, such as \"512 GiB\"");
  }
}

/// One end of a pair: a vertex, or several.
std::vector<VertexId> read_end(const JsonReader& reader, const Names& ids) {
  std::vector<VertexId> ends;
  const auto add = [&](const JsonReader& name) {
    const auto found = ids.find(name.text());
    if (found == ids.end()) {
      std::vector<std::string> known;
      for (const auto& [vertex, id] : ids) known.push_back(vertex);
      check_word(name, name.text(), known, "a vertex of the node");
    }
    ends.push_back(found->second);
  };
  if (reader.is_array()) {
    for (const JsonReader& name : reader.elements()) add(name);
  } else {
    add(reader);
  }
  return ends;
}

void read_links(const JsonReader& reader, const Names& ids, NodeDesign& design) {
  constexpr int most_cables = 1024;
  for (const JsonReader& group : reader.elements()) {
    const LinkKind kind = kind_of(link_words, group.at("kind").one_of(words(link_words)));
    const auto count = group.find("count");
    const int cables = count ? static_cast<int>(count->between(1, most_cables)) : 1;
    const auto bandwidth = group.at("bandwidth").quantity<BytesPerSecond>();
    const auto latency = group.at("latency").quantity<Seconds>();
    if (bandwidth <= BytesPerSecond{}) group.at("bandwidth").fail("a bandwidth above 0");
    for (const JsonReader& pair : group.at("pairs").elements()) {
      const std::vector<JsonReader> ends = pair.elements();
      if (ends.size() != 2) pair.fail("two vertices, or two lists of them");
      for (const VertexId a : read_end(ends[0], ids)) {
        for (const VertexId b : read_end(ends[1], ids)) {
          if (a == b) pair.fail("two different vertices");
          design.join(a, b, kind, cables, bandwidth, latency);
        }
      }
    }
  }
}

/// Builds one node, so that what cannot be one is told now, with the file's name.
void check(const NodeFile& node, const JsonReader& reader) {
  try {
    FabricDesign fabric;
    fabric.speed = node.port ? *node.port : network_speeds().front();
    const Cluster cluster(node.design, 1, fabric);
  } catch (const InputError& error) {
    reader.fail(error.expected, error.found);
  }
}

}  // namespace

int read_compute_capability(const JsonReader& reader) {
  const double tenfold = reader.number() * 10;
  if (tenfold < 10 || tenfold > 1000 || std::abs(tenfold - std::round(tenfold)) > 1e-6)
    reader.fail("a compute capability such as 7.0");
  return static_cast<int>(std::round(tenfold));
}

NetworkSpeed read_speed(const JsonReader& reader) {
  if (!reader.is_object()) {
    std::vector<std::string> known;
    for (const NetworkSpeed& speed : network_speeds()) known.push_back(speed.name);
    return network_speed(reader.one_of(known));
  }
  NetworkSpeed speed{.name = "",
                     .port = reader.at("bandwidth").quantity<BytesPerSecond>(),
                     .port_latency = reader.at("latency").quantity<Seconds>(),
                     .switch_latency = {},
                     .provenance = "the user's"};
  if (speed.port <= BytesPerSecond{}) reader.at("bandwidth").fail("a bandwidth above 0");
  const auto between_switches = reader.find("switch_latency");
  speed.switch_latency =
      between_switches ? between_switches->quantity<Seconds>() : speed.port_latency;
  return speed;
}

NodeFile read_node(const JsonReader& reader) {
  static_cast<void>(reader.find("$schema"));  // for editors
  NodeFile node{.design = {.name = reader.at("name").text(),
                           .gpu = reader.at("gpu").text(),
                           .vertices = {},
                           .links = {}},
                .port = {},
                .source = ""};
  if (const auto source = reader.find("source")) node.source = source->text();
  read_facts(reader, node.design);
  const Names ids = read_vertices(reader.at("vertices"), node.design);
  if (const auto links = reader.find("links")) read_links(*links, ids, node.design);
  const bool has_nics = std::ranges::find(node.design.vertices, VertexKind::nic, &Vertex::kind) !=
                        node.design.vertices.end();
  if (has_nics || reader.has("port")) node.port = read_speed(reader.at("port"));
  if (const auto drives = reader.find("drives")) node.design = read_drives(*drives, node.design);
  const auto nics = std::ranges::count(node.design.vertices, VertexKind::nic, &Vertex::kind);
  node.design.measured = read_measured(
      reader, has_nics ? static_cast<double>(nics) * node.port->port : BytesPerSecond{});
  reader.finish();
  check(node, reader);
  return node;
}

NodeFile read_node(const std::string& file) { return read_node(JsonReader::from_file(file)); }

}  // namespace stratagem::topology

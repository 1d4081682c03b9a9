// Reads presets or node files, changes what a scenario changes, and counts nodes.
#include "study/reading/cluster_choice.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "study/library.hpp"
#include "topology/drives.hpp"
#include "topology/fabric_choice.hpp"
#include "topology/node_file.hpp"
#include "topology/presets.hpp"

namespace stratagem::study {

int read_count(const JsonReader& reader) { return static_cast<int>(reader.between(1, 1'000'000)); }

std::string chosen(const JsonReader& reader, const std::string& one, const std::string& other) {
  if (!reader.has(other)) return one;
  if (!reader.has(one)) return other;
  const auto own = [&](const std::string& key) {
    return reader.at(key).path().starts_with(reader.path() + "/");
  };
  if (own(one) == own(other))
    reader.at(other).fail("the key \"" + one + "\" or the key \"" + other + "\", not both");
  reader.at(own(one) ? other : one).skip();
  return own(one) ? one : other;
}

namespace {

/// The servers of a cluster, as a preset or a file of the user's describes them.
topology::NodeFile read_servers(const JsonReader& reader) {
  if (chosen(reader, "preset", "node") == "node")
    return topology::read_node(file_of(reader.at("node"), "nodes"));
  std::vector<std::string> names;
  for (const topology::Preset& preset : topology::presets()) names.push_back(preset.name);
  const JsonReader preset_name = reader.at("preset");
  if (const auto nodes = names_in_library("nodes");
      preset_name.is_string() && std::ranges::count(nodes, preset_name.text()) > 0)
    preset_name.fail("\"node\": " + preset_name.dump() +
                     " in place of the preset, since it is a "
                     "server's file");
  const std::string name = preset_name.one_of(names);
  const auto preset = std::ranges::find(topology::presets(), name, &topology::Preset::name);
  const topology::Cluster cluster = preset->build(1);
  return {cluster.design(), cluster.fabric().design().speed, ""};
}

topology::FabricDesign read_fabric(const JsonReader& reader, const topology::NodeFile& server) {
  const auto nics = static_cast<int>(std::ranges::count(
      server.design.vertices, topology::VertexKind::nic, &topology::Vertex::kind));
  if (const auto fabric = reader.find("fabric"))
    return topology::read_fabric(*fabric, server.port, nics);
  const bool without = !server.port;  // then there is no adapter either
  return {.speed = without ? topology::network_speeds().front() : *server.port};
}

/// Where ranks are processors, as many on each server as `"ranks_per_node"` says.
void divide_processors(const JsonReader& reader, topology::NodeDesign& design) {
  const auto ranks = reader.find("ranks_per_node");
  if (!ranks) return;
  try {
    design = topology::divided(design, read_count(*ranks));
  } catch (const InputError& error) {
    ranks->fail(error.expected, error.found);
  }
}

/// Servers of one kind come with more memory or less.
void read_host_memory(const JsonReader& reader, topology::NodeDesign& design) {
  const auto memory = reader.find("host_memory");
  if (!memory) return;
  design.host_memory = memory->quantity<Bytes>();
  if (*design.host_memory < Bytes{}) memory->fail("a size of 0 or more, such as \"512 GiB\"");
}

void read_price(const JsonReader& reader, topology::NodeDesign& design) {
  const auto price = reader.find("price_per_gpu_hour");
  if (!price) return;
  design.price_per_gpu_hour = price->number();
  if (!(*design.price_per_gpu_hour > 0) || *design.price_per_gpu_hour > 1e6)
    price->fail("more than 0, and at most 1e6");
}

}  // namespace

std::string gpu_of(const JsonReader& reader) { return read_servers(reader).design.gpu; }

ClusterChoice read_cluster(const JsonReader& reader) {
  topology::NodeFile server = read_servers(reader);
  read_host_memory(reader, server.design);
  read_price(reader, server.design);
  if (const auto drives = reader.find("drives"))
    server.design = topology::read_drives(*drives, server.design);
  divide_processors(reader, server.design);
  const bool on_processors = server.design.on_processors();
  const std::string in_use = on_processors ? "ranks" : "gpus";
  const std::string key = chosen(reader, "gpus", "ranks");
  if (key != in_use && reader.has(key))
    reader.at(key).fail("the key \"" + in_use + "\" for " + server.design.name, "\"" + key + "\"");
  const auto gpus = reader.find(in_use);
  const auto nodes = reader.find("nodes");
  if (!gpus && !nodes) reader.fail("the key \"" + in_use + "\" or the key \"nodes\"");
  const int per_node = server.design.ranks();
  const int wanted = gpus ? read_count(*gpus) : read_count(*nodes) * per_node;
  const int needed = (wanted + per_node - 1) / per_node;
  if (gpus && nodes && needed > read_count(*nodes)) {
    gpus->fail("at most the " + std::to_string(read_count(*nodes) * per_node) + " " +
               (on_processors ? "ranks" : "GPUs") + " of the nodes");
  }
  const topology::FabricDesign fabric = read_fabric(reader, server);
  try {
    return {topology::Cluster(server.design, nodes ? read_count(*nodes) : needed, fabric), wanted};
  } catch (const InputError& error) {
    (reader.has("fabric") ? reader.at("fabric") : reader).fail(error.expected, error.found);
  }
}

}  // namespace stratagem::study

// Adds drives to a server, takes them away, and reads them from JSON.
#include "topology/drives.hpp"

#include <algorithm>
#include <map>

#include "base/input_error.hpp"

namespace stratagem::topology {
namespace {

bool carries_drives(VertexKind kind) {
  return kind == VertexKind::cpu || kind == VertexKind::pcie_switch;
}

/// Vertices by name, in the order of the list.
std::vector<VertexId> read_places(const JsonReader& reader, const NodeDesign& design) {
  std::map<std::string, VertexId> ids;
  std::vector<std::string> known;
  for (std::size_t id = 0; id < design.vertices.size(); ++id) {
    if (!carries_drives(design.vertices[id].kind)) continue;
    ids.emplace(design.vertices[id].name, static_cast<VertexId>(id));
    known.push_back(design.vertices[id].name);
  }
  std::vector<VertexId> places;
  for (const JsonReader& name : reader.elements()) {
    check_word(name, name.text(), known, "a PCIe switch or a processor of the server");
    places.push_back(ids.at(name.text()));
  }
  if (places.empty()) reader.fail("a vertex at least");
  return places;
}

template <typename Quantity>
void read_positive(const JsonReader& reader, const char* key, bool needed, Quantity& target) {
  const std::optional<JsonReader> value = needed ? reader.at(key) : reader.find(key);
  if (!value) return;
  target = value->quantity<Quantity>();
  if (target <= Quantity{}) value->fail("a value above 0");
}

}  // namespace

int drive_count(const NodeDesign& design) {
  return static_cast<int>(std::ranges::count(design.vertices, VertexKind::drive, &Vertex::kind));
}

Bytes capacity_of_drives(const NodeDesign& design) {
  return design.drives ? drive_count(design) * design.drives->capacity : Bytes{};
}

std::vector<VertexId> places_of_drives(const NodeDesign& design) {
  std::vector<VertexId> places;
  for (const Link& link : design.links) {
    if (link.kind == LinkKind::drive && std::ranges::count(places, link.b) == 0)
      places.push_back(link.b);
  }
  return places;
}

std::vector<VertexId> processors_of(const NodeDesign& design) {
  std::vector<VertexId> processors;
  for (std::size_t id = 0; id < design.vertices.size(); ++id) {
    if (design.vertices[id].kind == VertexKind::cpu)
      processors.push_back(static_cast<VertexId>(id));
  }
  return processors;
}

NodeDesign without_drives(const NodeDesign& design) {
  NodeDesign result = design;
  result.vertices.clear();
  result.links.clear();
  result.drives.reset();
  std::vector<VertexId> become;  // by vertex
  for (const Vertex& vertex : design.vertices) {
    become.push_back(static_cast<VertexId>(result.vertices.size()));
    if (vertex.kind != VertexKind::drive) result.vertices.push_back(vertex);
  }
  for (Link link : design.links) {
    if (link.kind == LinkKind::drive) continue;
    link.a = become[link.a];
    link.b = become[link.b];
    result.links.push_back(link);
  }
  return result;
}

NodeDesign with_drives(const NodeDesign& design, int count, const Drives& drives,
                       const std::vector<VertexId>& at) {
  if (count < 1) throw InputError("", "", "1 drive or more", std::to_string(count));
  if (at.empty() || design.on_processors())
    throw InputError("", "", "drives of servers whose GPUs have processors beside them",
                     design.name);
  NodeDesign result = without_drives(design);
  result.drives = drives;
  for (int i = 0; i < count; ++i) {
    const std::string& stands_at = design.vertices[at[i * at.size() / count]].name;
    const auto place = std::ranges::find(result.vertices, stands_at, &Vertex::name);
    const auto place_id = static_cast<VertexId>(place - result.vertices.begin());
    const VertexId drive = result.add(VertexKind::drive, "drive" + std::to_string(i));
    result.links.push_back({.a = drive,
                            .b = place_id,
                            .kind = LinkKind::drive,
                            .count = 1,
                            .bandwidth = drives.read,
                            .latency = {},
                            .back = drives.write});
  }
  return result;
}

NodeDesign read_drives(const JsonReader& reader, const NodeDesign& design) {
  const bool own = design.drives.has_value();
  Drives drives = own ? *design.drives : Drives{};
  int count = drive_count(design);
  const std::optional<JsonReader> number = own ? reader.find("count") : reader.at("count");
  if (number) count = static_cast<int>(number->between(0, 1024));
  if (count == 0) {
    reader.finish();
    return without_drives(design);
  }
  read_positive(reader, "capacity", !own, drives.capacity);
  read_positive(reader, "read", !own, drives.read);
  read_positive(reader, "write", !own, drives.write);
  const bool other = !own || reader.has("capacity") || reader.has("read") || reader.has("write");
  const auto provenance = reader.find("provenance");
  const auto source = reader.find("source");
  if (provenance) {
    drives.provenance =
        provenance->one_of({"measured", "published", "datasheet", "from memory", "assumed"});
  } else if (other) {
    drives.provenance = "the user's";
  }
  if (source || other) drives.source = source ? source->text() : "";
  std::vector<VertexId> at = own ? places_of_drives(design) : processors_of(design);
  if (const auto places = reader.find("at")) at = read_places(*places, design);
  reader.finish();
  try {
    return with_drives(design, count, drives, at);
  } catch (const InputError& error) {
    reader.fail(error.expected, error.found);
  }
}

}  // namespace stratagem::topology

// Reads the key "fabric".
#include "topology/fabric_choice.hpp"

#include "topology/node_file.hpp"

namespace stratagem::topology {

namespace {

double ratio(const JsonReader& reader) {
  const double value = reader.number();
  if (!(value >= 1)) reader.fail("a ratio of 1 or more");
  return value;
}

/// `true`: a rail for every adapter of a server.
int read_rails(const JsonReader& reader, int nics) {
  if (reader.is_number()) return static_cast<int>(reader.between(1, nics));
  return reader.boolean() ? nics : 0;
}

void read_tree(const JsonReader& reader, int nics, FabricDesign& design) {
  constexpr int most_ports = 4096;
  if (const auto rails = reader.find("rails")) design.rails = read_rails(*rails, nics);
  if (const auto radix = reader.find("radix"))
    design.speed.radix = static_cast<int>(radix->between(2, most_ports));
  if (const auto over = reader.find("oversubscription")) design.oversubscription = ratio(*over);
  if (const auto over = reader.find("core_oversubscription"))
    design.core_oversubscription = ratio(*over);
  if (const auto nodes = reader.find("nodes_per_leaf")) {
    const int rails = design.rails > 0 ? design.rails : 1;
    design.ports_per_leaf =
        static_cast<int>(nodes->between(1, most_ports)) * ((nics + rails - 1) / rails);
  }
}

}  // namespace

FabricDesign read_fabric(const JsonReader& reader, const std::optional<NetworkSpeed>& own,
                         int nics) {
  const bool tree = reader.at("kind").one_of({"single_switch", "fat_tree"}) == "fat_tree";
  FabricDesign design{.kind = tree ? FabricKind::fat_tree : FabricKind::single_switch,
                      .speed = own && !reader.has("speed") ? *own : read_speed(reader.at("speed"))};
  if (tree) read_tree(reader, nics, design);
  return design;
}

}  // namespace stratagem::topology

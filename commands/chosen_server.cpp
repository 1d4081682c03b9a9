// Presets and node files by name.
#include "commands/chosen_server.hpp"

#include <fmt/format.h>

#include <vector>

#include "commands/arguments.hpp"
#include "topology/presets.hpp"

namespace stratagem::commands {

topology::NodeFile server_named(const std::string& name) {
  if (name.ends_with(".json")) return topology::read_node(name);
  std::vector<std::string> known;
  for (const topology::Preset& preset : topology::presets()) {
    if (preset.name != name) {
      known.push_back(preset.name);
      continue;
    }
    const topology::Cluster one = preset.build(1);
    return {one.design(), one.fabric().design().speed, "preset " + name};
  }
  throw UsageError(fmt::format("no preset \"{}\", nor a path that ends in .json; presets are {}",
                               name, fmt::join(known, ", ")));
}

}  // namespace stratagem::commands

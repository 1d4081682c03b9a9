// A cluster's fabric as scenarios and the command line say it.
#pragma once

#include <optional>

#include "base/json_reader.hpp"
#include "topology/fabric.hpp"

namespace stratagem::topology {

/// Reads `{"kind": "fat_tree", "speed": "NDR", "rails": true, "oversubscription": 2}`;
/// docs/reference/scenario.md has every key. `own` is the speed of the servers' adapters, taken
/// where the object says none; `nics` the adapters of a server. Throws InputError for what is not
/// of the format.
FabricDesign read_fabric(const JsonReader& reader, const std::optional<NetworkSpeed>& own,
                         int nics);

}  // namespace stratagem::topology

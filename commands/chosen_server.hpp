// The server that a command asks for: a preset by name, or a file.
#pragma once

#include <string>

#include "topology/node_file.hpp"

namespace stratagem::commands {

/// A preset by name, or the user's own server by the path of its file. Throws UsageError for
/// neither.
topology::NodeFile server_named(const std::string& name);

}  // namespace stratagem::commands

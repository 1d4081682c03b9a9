// A server as a JSON file: what users describe themselves, importers write and presets print.
#pragma once

#include <optional>
#include <string>

#include "base/json_reader.hpp"
#include "topology/cluster.hpp"
#include "topology/network_speed.hpp"

namespace stratagem::topology {

/// docs/reference/scenario.md has every key. Vertices are numbered kind by kind.
struct NodeFile {
  NodeDesign design;
  std::optional<NetworkSpeed> port;  ///< of its network adapters; a node without any may lack it
  std::string source;                ///< where the figures are from, "" where nobody says
};

/// Throws InputError for what is not of the format, and for a node whose GPUs do not reach each
/// other.
NodeFile read_node(const std::string& file);
NodeFile read_node(const JsonReader& reader);

/// The file's text; reads back as the same node, its vertices ordered by kind.
std::string node_text(const NodeFile& node);

/// A compute capability as CUDA has it, 7.0: ten times that.
int read_compute_capability(const JsonReader& reader);

/// A network speed: the name of a known one, or its figures.
NetworkSpeed read_speed(const JsonReader& reader);

}  // namespace stratagem::topology

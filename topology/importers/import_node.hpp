// Node files from what NVIDIA's tools print about a server.
#pragma once

#include <string>

#include "topology/node_file.hpp"

namespace stratagem::topology::importers {

/// What the user adds, since the file does not say it; "" where he does not.
struct Known {
  std::string gpu;   ///< name of the GPU's profile
  std::string port;  ///< name of a network speed
  std::string name;  ///< of the server; the file's name if ""
};

/// Reads a topology of NCCL (XML) or a matrix of `nvidia-smi topo -m` (text), whichever the file
/// holds. Adapters that are nobody's nearest (for storage, say) are left out. `source` of the
/// result tells where each kind of figure is from. Throws InputError for a file that is neither,
/// for what contradicts itself, and for what neither the file nor the user says.
NodeFile import_node(const std::string& file, const Known& known);

/// The same for text that was read already; `file` for messages.
NodeFile import_nccl_xml(const std::string& text, const std::string& file, const Known& known);
NodeFile import_smi_matrix(const std::string& text, const std::string& file, const Known& known);

/// Without the adapters that are not among the nearest of any GPU.
NodeFile without_far_adapters(NodeFile node);

}  // namespace stratagem::topology::importers

// NVLinks of a topology file of NCCL.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "topology/importers/inside/nccl_elements.hpp"
#include "topology/node_file.hpp"

namespace stratagem::topology::importers {

/// Adds the links of GPUs to each other, to NVSwitches and, over C2C, to processors.
class NcclNvLinks {
 public:
  NcclNvLinks(const NcclFile& file, NodeDesign& design) : file_(file), design_(design) {}

  /// `at_bus`: GPUs by host and bus.
  void add(const Numbered& gpu, VertexId own, VertexId cpu,
           const std::map<std::pair<int, std::string>, VertexId>& at_bus);
  /// After the last GPU: joins what they said, with the rate of the first one's generation.
  void finish(const pugi::xml_node& first);

 private:
  [[nodiscard]] BytesPerSecond rate(const pugi::xml_node& where) const;

  const NcclFile& file_;
  NodeDesign& design_;
  std::map<std::pair<VertexId, VertexId>, int> pairs_;  ///< links between GPUs
  std::map<std::string, std::map<VertexId, int>> to_switches_;
};

}  // namespace stratagem::topology::importers

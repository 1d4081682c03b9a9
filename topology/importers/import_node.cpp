// Tells the formats apart, and leaves out adapters that nobody would use.
#include "topology/importers/import_node.hpp"

#include <filesystem>
#include <set>
#include <vector>

#include "base/read_file.hpp"

namespace stratagem::topology::importers {

namespace {

/// The design without some vertices and their links.
NodeDesign without(const NodeDesign& design, const std::set<VertexId>& gone) {
  NodeDesign kept = design;
  kept.vertices.clear();
  kept.links.clear();
  std::vector<VertexId> place(design.vertices.size(), -1);
  for (std::size_t id = 0; id < design.vertices.size(); ++id) {
    const Vertex& vertex = design.vertices[id];
    if (!gone.contains(static_cast<VertexId>(id))) place[id] = kept.add(vertex.kind, vertex.name);
  }
  for (Link link : design.links) {
    link.a = place[static_cast<std::size_t>(link.a)];
    link.b = place[static_cast<std::size_t>(link.b)];
    if (link.a >= 0 && link.b >= 0) kept.links.push_back(link);
  }
  return kept;
}

}  // namespace

NodeFile without_far_adapters(NodeFile node) {
  if (!node.port) return node;
  const Cluster cluster(node.design, 1, FabricDesign{.speed = *node.port});
  std::set<int> near;
  for (int gpu = 0; gpu < cluster.gpus(); ++gpu) {
    const std::vector<int> nearest = cluster.nearest_nics(gpu);
    near.insert(nearest.begin(), nearest.end());
  }
  std::set<VertexId> far;
  std::string names;
  for (std::size_t id = 0; id < node.design.vertices.size(); ++id) {
    const Vertex& vertex = node.design.vertices[id];
    if (vertex.kind != VertexKind::nic || near.contains(vertex.index)) continue;
    far.insert(static_cast<VertexId>(id));
    names += (names.empty() ? "" : ", ") + vertex.name;
  }
  if (far.empty()) return node;
  node.design = without(node.design, far);
  node.source += "; left out, since no GPU's nearest: " + names;
  return node;
}

NodeFile import_node(const std::string& file, const Known& known) {
  const std::string text = read_file(file);
  Known complete = known;
  if (complete.name.empty()) complete.name = std::filesystem::path(file).stem().string();
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool xml = first != std::string::npos && text[first] == '<';
  return without_far_adapters(xml ? import_nccl_xml(text, file, complete)
                                  : import_smi_matrix(text, file, complete));
}

}  // namespace stratagem::topology::importers

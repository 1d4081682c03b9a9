// The words of node files for kinds of vertices, links and processors; inside topology only.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "topology/cluster.hpp"

namespace stratagem::topology {

inline constexpr std::array<std::pair<const char*, VertexKind>, 6> vertex_words{
    {{"gpu", VertexKind::gpu},
     {"cpu_rank", VertexKind::cpu_rank},
     {"nv_switch", VertexKind::nv_switch},
     {"pcie_switch", VertexKind::pcie_switch},
     {"cpu", VertexKind::cpu},
     {"nic", VertexKind::nic}}};

inline constexpr std::array<std::pair<const char*, LinkKind>, 5> link_words{
    {{"nvlink", LinkKind::nvlink},
     {"c2c", LinkKind::c2c},
     {"pcie", LinkKind::pcie},
     {"inter_socket", LinkKind::inter_socket},
     {"memory", LinkKind::memory}}};

inline constexpr std::array<std::pair<const char*, Processor>, 5> processor_words{
    {{"intel_broadwell", Processor::intel_broadwell},
     {"intel_skylake", Processor::intel_skylake},
     {"intel_sapphire_rapids", Processor::intel_sapphire_rapids},
     {"intel_emerald_rapids", Processor::intel_emerald_rapids},
     {"amd", Processor::amd}}};

template <typename Table>
std::vector<std::string> words(const Table& table) {
  std::vector<std::string> result;
  result.reserve(table.size());
  for (const auto& [word, kind] : table) result.emplace_back(word);
  return result;
}

/// The kind that a word of the table stands for.
template <typename Table>
auto kind_of(const Table& table, const std::string& word) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == word; });
  expects(found != table.end(), "a word of the table");
  return found->second;
}

/// The word of a kind, which the table must have.
template <typename Table, typename Kind>
std::string word_of(const Table& table, Kind kind) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.second == kind; });
  expects(found != table.end(), "a kind that node files have a word for");
  return found->first;
}

}  // namespace stratagem::topology

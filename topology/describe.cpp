// A cluster as a table for people.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/quantity_text.hpp"
#include "topology/drives.hpp"
#include "topology/measured_collectives.hpp"
#include "topology/presets.hpp"

namespace stratagem::topology {

namespace {

/// Rows of cells under each other, two blanks apart.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], width[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string contents(const NodeDesign& design) {
  constexpr std::array kinds{VertexKind::gpu,         VertexKind::cpu_rank, VertexKind::nv_switch,
                             VertexKind::pcie_switch, VertexKind::cpu,      VertexKind::nic,
                             VertexKind::drive};
  std::string text;
  for (const VertexKind kind : kinds) {
    const auto number = std::count_if(design.vertices.begin(), design.vertices.end(),
                                      [kind](const Vertex& vertex) { return vertex.kind == kind; });
    if (number > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, to_text(kind));
  }
  return text;
}

/// The links of node 0 and its ports, equal ones in one row, in the order of their first
/// occurrence.
std::string distinct_links(const Cluster& cluster) {
  const auto kind_of = [&cluster](VertexId id) {
    return cluster.vertices()[static_cast<std::size_t>(id)].kind;
  };
  const auto key = [&kind_of](const Link& link) {
    const auto [low, high] = std::minmax({kind_of(link.a), kind_of(link.b)});
    return std::tuple(low, high, link.kind, link.count, link.bandwidth.value, link.latency.value);
  };
  const auto node_of = [&cluster](VertexId id) {
    return cluster.vertices()[static_cast<std::size_t>(id)].node;
  };
  std::vector<std::pair<Link, int>> distinct;
  for (const Link& link : cluster.links()) {
    if (node_of(link.a) != 0) continue;  // of other nodes, or between switches of the fabric
    const auto same = std::find_if(distinct.begin(), distinct.end(), [&](const auto& entry) {
      return key(entry.first) == key(link);
    });
    if (same == distinct.end()) {
      distinct.emplace_back(link, 1);
    } else {
      ++same->second;
    }
  }
  std::vector<std::vector<std::string>> rows{
      {"between", "kind", "links", "cables each", "bandwidth", "latency"}};
  for (const auto& [link, number] : distinct) {
    const bool two_rates = link.toward(true) != link.toward(false);
    rows.push_back({to_text(kind_of(link.a)) + " - " + to_text(kind_of(link.b)), to_text(link.kind),
                    std::to_string(number), std::to_string(link.count),
                    to_text(link.bandwidth) + (two_rates ? ", back " + to_text(*link.back) : ""),
                    to_text(link.latency)});
  }
  return table(rows);
}

/// What each reads and writes is of its link; empty without drives.
std::string drives_text(const NodeDesign& design) {
  if (!design.drives) return "";
  const Drives& drives = *design.drives;
  return fmt::format(
      "drives: {} of {}, together {}; read {}, write {} each\n"
      "  {}{}\n",
      drive_count(design), to_text(drives.capacity), to_text(capacity_of_drives(design)),
      to_text(drives.read), to_text(drives.write), drives.provenance,
      drives.source.empty() ? "" : ": " + drives.source);
}

/// Empty where none was measured.
std::string measured_text(const NodeDesign& design) {
  std::string text;
  for (const MeasuredKind& kind : measured_kinds) {
    for (const MeasuredCollective& one : design.measured.*kind.list) {
      text +=
          fmt::format("measured {} of {} on {} servers: {} of bus bandwidth\n  {}\n", kind.name,
                      to_text(one.payload), one.servers, to_text(one.bus_bandwidth), one.source);
    }
  }
  return text;
}

/// One row for each run of neighbouring GPUs, or ranks on processors, that look alike.
std::string gpu_rows(const Cluster& cluster) {
  const NodeDesign& design = cluster.design();
  std::vector<VertexId> gpus;
  for (std::size_t id = 0; id < design.vertices.size(); ++id) {
    if (is_rank(design.vertices[id].kind)) gpus.push_back(static_cast<VertexId>(id));
  }
  const bool on_processors = design.on_processors();
  const LinkKind own = on_processors ? LinkKind::memory : LinkKind::nvlink;
  std::vector<std::vector<std::string>> rows{{"GPU", "NVLinks", "NVLink bandwidth", "nearest NIC"}};
  if (on_processors) rows = {{"rank", "memory channels", "memory bandwidth", "nearest NIC"}};
  std::size_t first = 0;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    int cables = 0;
    BytesPerSecond bandwidth;
    for (const Link& link : design.links) {
      if (link.kind != own || (link.a != gpus[gpu] && link.b != gpus[gpu])) continue;
      cables += link.count;
      bandwidth += link.bandwidth;
    }
    std::string nics;
    for (const int nic : cluster.nearest_nics(static_cast<int>(gpu))) {
      nics += fmt::format("{}{}", nics.empty() ? "" : ", ", nic);
    }
    std::vector<std::string> row{std::to_string(gpu), std::to_string(cables),
                                 cables > 0 ? to_text(bandwidth) : "-", nics.empty() ? "-" : nics};
    const bool alike =
        rows.size() > 1 && std::equal(row.begin() + 1, row.end(), rows.back().begin() + 1);
    if (alike) {
      rows.back().front() = fmt::format("{}-{}", first, gpu);
    } else {
      first = gpu;
      rows.push_back(std::move(row));
    }
  }
  return table(rows);
}

std::string network(const Cluster& cluster) {
  int ports = 0;
  BytesPerSecond total;
  for (const Link& link : cluster.links()) {
    if (link.kind != LinkKind::network) continue;
    if (cluster.vertices()[static_cast<std::size_t>(link.a)].node != 0) continue;
    ++ports;
    total += link.bandwidth;
  }
  if (ports == 0) return "none";
  return fmt::format("{} ports of {}, together {}", ports, to_text(total / ports), to_text(total));
}

/// One row for each stage of a fat tree: how many switches, how many cables up from each group.
std::string stages(const Fabric& fabric) {
  std::vector<std::vector<std::string>> rows{
      {"stage", "groups", "switches each", "cables up each", "bandwidth up each"}};
  const auto row = [&](const std::string& name, const Fabric::Stage& stage) {
    if (stage.groups == 0) return;
    rows.push_back({name, std::to_string(stage.groups), std::to_string(stage.switches),
                    stage.cables > 0 ? std::to_string(stage.cables) : "-",
                    stage.cables > 0 ? to_text(stage.up) : "-"});
  };
  row("leaf", fabric.leaves());
  row("spine", fabric.spines());
  row("core", fabric.cores());
  return table(rows);
}

/// Nothing of a fabric that is one switch: it has nothing to tell.
std::string fabric_text(const Fabric& fabric) {
  const FabricDesign& design = fabric.design();
  if (design.kind == FabricKind::single_switch) return "";
  return fmt::format(
      "\nfabric: fat tree of switches with {} ports of {}, {}, {} adapters on a leaf, "
      "oversubscription {}:1\n{}",
      design.speed.radix, to_text(design.speed.port),
      design.rails > 0 ? fmt::format("{} rails", design.rails) : "no rails",
      fabric.ports_per_leaf(), design.oversubscription, stages(fabric));
}

}  // namespace

std::string describe(const Cluster& cluster) {
  const NodeDesign& design = cluster.design();
  const std::string ranks = design.on_processors() ? "ranks" : "GPUs";
  return fmt::format(
      "{}: {} node{} of {} {}, {} {} (profile {})\n"
      "node: {}\n"
      "network per node: {}\n"
      "memory of its processors: {}\n{}\n"
      "links of a node, bandwidth per direction:\n{}\n"
      "{} of a node:\n{}{}",
      design.name, cluster.nodes(), cluster.nodes() == 1 ? "" : "s", cluster.gpus_per_node(), ranks,
      cluster.gpus(), ranks, design.gpu, contents(design), network(cluster),
      design.host_memory ? to_text(*design.host_memory) : "not known",
      drives_text(design) + measured_text(design), distinct_links(cluster), ranks,
      gpu_rows(cluster), fabric_text(cluster.fabric()));
}

}  // namespace stratagem::topology

// Groups of GPUs, and their rows.
#include "calibrate/measure/gpu_collectives.hpp"

#include <algorithm>
#include <utility>

#include "calibrate/measure/collective_call.hpp"

namespace stratagem::calibrate {

std::vector<GpuGroups> gpu_groups(Sweep sweep, int ranks) {
  std::vector<GpuGroups> result;
  for (const Grouping& grouping : groupings(sweep, ranks)) {
    const int run = grouping.size * grouping.stride;
    const int all = ranks / run * grouping.stride;
    if (grouping.stride == 1 && all > 1) result.push_back({.grouping = grouping, .groups = 1});
    result.push_back({.grouping = grouping, .groups = all});
  }
  return result;
}

std::vector<int> group_of(const GpuGroups& groups, int rank, int ranks) {
  std::vector<int> members = group_of(groups.grouping, rank, ranks);
  if (members.empty() || groups.groups > 1) return members;
  return members.front() == 0 ? members : std::vector<int>{};
}

std::vector<GpuCollective> gpu_collectives(const GpuGroups& groups) {
  std::vector<GpuCollective> result;
  for (const cost::CollectiveKind kind : measured_collectives)
    for (std::int64_t size = 1024; size <= largest_gpu_collective; size *= 2)
      result.push_back({.kind = kind, .groups = groups, .size = size});
  return result;
}

Experiment experiment_of(const GpuCollective& collective) {
  const auto& [grouping, groups] = collective.groups;
  return {.kind = "nccl_" + cost::to_text(collective.kind),
          .operation = "",
          .columns = {"ranks", "stride", "groups", "size B"},
          .sizes = {grouping.size, grouping.stride, groups, collective.size},
          .transposes = "",
          .flops = {},
          .bytes = Bytes{static_cast<double>(collective.size)},
          .prepare = {}};
}

GpuCollectiveTables::GpuCollectiveTables(std::string cluster, std::string version)
    : cluster_(std::move(cluster)), version_(std::move(version)) {}

void GpuCollectiveTables::add(const GpuCollective& collective, const Timed& timed) {
  auto table = std::ranges::find(tables_, collective.kind, &Table::kind);
  if (table == tables_.end()) table = tables_.insert(table, Table{.kind = collective.kind});
  Json row = Json::array();
  for (const std::int64_t size : experiment_of(collective).sizes) row.push(size);
  table->rows.push(row.push(timed.median.value * 1e6).push(timed.spread).push(timed.repeats));
  const int ranks = collective.groups.grouping.size;
  const bool known = std::ranges::find(table->fitted_ranks, ranks) != table->fitted_ranks.end();
  if (collective.groups.groups == 1 && !known) table->fitted_ranks.push_back(ranks);
}

std::vector<Json> GpuCollectiveTables::json() const {
  std::vector<Json> result;
  for (const Table& table : tables_) {
    Json columns = Json::array(), fitted = Json::array();
    for (const std::string& column : experiment_of({.kind = table.kind}).columns)
      columns.push(column);
    for (const char* column : {"time us", "spread", "repeats"}) columns.push(column);
    for (const int ranks : table.fitted_ranks) fitted.push(ranks);
    result.push_back(Json::object()
                         .set("kind", "nccl_" + cost::to_text(table.kind))
                         .set("type", "fp32")
                         .set("timing", "kernel")
                         .set("cluster", cluster_)
                         .set("version", version_)
                         .set("fitted_ranks", fitted)
                         .set("columns", columns)
                         .set("rows", table.rows));
  }
  return result;
}

}  // namespace stratagem::calibrate

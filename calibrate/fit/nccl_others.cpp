// The loads of one collective, or of a ring of sends, on links that nothing else uses.
#include "calibrate/fit/nccl_others.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "calibrate/fit/nccl.hpp"
#include "cost/link_loads.hpp"

namespace stratagem::calibrate {
namespace {

/// Every rank to the next one.
cost::Route ring_of_sends(cost::Collectives& collectives, const std::vector<int>& gpus,
                          Bytes size) {
  cost::Route all;
  cost::LinkLoads loads;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const cost::Route one =
        collectives.route(cost::CollectiveKind::send, {gpus[i], gpus[(i + 1) % gpus.size()]}, size);
    for (const cost::LinkLoad& load : one.loads) loads.add(load.direction, load.load);
    all.latency = std::max(all.latency, one.latency);
    all.limit = std::min(all.limit, one.limit);
  }
  all.loads = loads.list();
  return all;
}

}  // namespace

Seconds predict_alone(cost::Collectives& collectives, cost::CollectiveKind kind, int ranks,
                      Bytes size) {
  std::vector<int> gpus(ranks);
  std::iota(gpus.begin(), gpus.end(), 0);
  const cost::Route route = kind == cost::CollectiveKind::send
                                ? ring_of_sends(collectives, gpus, size)
                                : collectives.route(kind, gpus, size);
  return collectives.alone(route, size);
}

std::string describe_others(const NcclTable& table) {
  const topology::Cluster server = server_named(table.cluster);
  cost::Collectives collectives(server, cost::as_searched(server.design()), table.version);
  std::string text =
      fmt::format("{}, NCCL {}, {}: predicted over measured, %, uncorrected, payloads in MiB\n",
                  table.cluster, table.version, cost::to_text(table.collective));
  std::map<int, std::string> rows;
  for (const NcclPoint& point : table.points) {
    if (!power_of_two(point.size)) continue;
    const Seconds predicted = predict_alone(collectives, table.collective, point.ranks, point.size);
    rows[point.ranks] +=
        fmt::format("  {:g}: {:+.1f}", point.size / 1_MiB, 100 * (predicted / point.time - 1));
  }
  for (const auto& [ranks, row] : rows) text += fmt::format("{:4} GPUs{}\n", ranks, row);
  return text;
}

}  // namespace stratagem::calibrate

// Holds predicted all-reduces to measured ones.
#include "cost/port_shares.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "cost/collectives.hpp"

namespace stratagem::cost {

using topology::MeasuredReduction;

bool is_port(const topology::Cluster& cluster, topology::LinkId link) {
  const topology::Link& of = cluster.links()[link];
  return of.kind == topology::LinkKind::network &&
         cluster.vertices()[of.a].kind == topology::VertexKind::nic;
}

PortShares::PortShares(const topology::Cluster& cluster, const CollectiveConstants& constants,
                       std::string nccl)
    : cluster_(cluster), constants_(constants), nccl_(std::move(nccl)) {}

double PortShares::at(int servers) {
  const std::vector<MeasuredReduction>& measured = cluster_.design().reductions;
  if (measured.empty() || servers < 2) return 1;
  const auto above = std::ranges::lower_bound(measured, servers, {}, &MeasuredReduction::servers);
  if (above == measured.begin()) return of(*above);
  if (above == measured.end()) return of(measured.back());
  const MeasuredReduction& below = *std::prev(above);
  const double way = std::log2(static_cast<double>(servers) / below.servers) /
                     std::log2(static_cast<double>(above->servers) / below.servers);
  return std::lerp(of(below), of(*above), way);
}

double PortShares::of(const MeasuredReduction& measured) {
  const auto [found, fresh] = found_.try_emplace(measured.servers, 1);
  if (!fresh) return found->second;
  topology::NodeDesign design = cluster_.design();
  design.reductions.clear();
  topology::FabricDesign one_switch;
  one_switch.speed = cluster_.fabric().design().speed;
  const topology::Cluster cluster(std::move(design), measured.servers, one_switch);
  Collectives collectives(cluster, constants_, nccl_);
  std::vector<int> ranks(static_cast<std::size_t>(cluster.gpus()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const Route route = collectives.route(CollectiveKind::all_reduce, ranks, measured.payload);
  Seconds port;
  for (const LinkLoad& load : route.loads) {
    if (!is_port(cluster, load.direction.link)) continue;
    const topology::Link& link = cluster.links()[load.direction.link];
    port = std::max(port, measured.payload * load.load / collectives.usable(link));
  }
  const double n = cluster.gpus();
  const Seconds took = measured.payload * (2 * (n - 1) / n) / measured.bus_bandwidth;
  if (took > route.latency) found->second = std::min(1.0, port / (took - route.latency));
  return found->second;
}

}  // namespace stratagem::cost

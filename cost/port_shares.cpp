// Holds predicted collectives to measured ones.
#include "cost/port_shares.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

namespace stratagem::cost {

using topology::MeasuredCollective;
using topology::MeasuredCollectives;

namespace {

/// As which kind of collective another one counts: itself where it was measured, or an all-reduce.
CollectiveKind measured_as(CollectiveKind kind, const MeasuredCollectives& measured) {
  const bool itself = (kind == CollectiveKind::all_gather && !measured.all_gathers.empty()) ||
                      (kind == CollectiveKind::reduce_scatter && !measured.reduce_scatters.empty());
  return itself ? kind : CollectiveKind::all_reduce;
}

const std::vector<MeasuredCollective>& measured_of(CollectiveKind kind,
                                                   const MeasuredCollectives& measured) {
  if (kind == CollectiveKind::all_gather) return measured.all_gathers;
  return kind == CollectiveKind::reduce_scatter ? measured.reduce_scatters : measured.all_reduces;
}

}  // namespace

bool is_port(const topology::Cluster& cluster, topology::LinkId link) {
  const topology::Link& of = cluster.links()[link];
  return of.kind == topology::LinkKind::network &&
         cluster.vertices()[of.a].kind == topology::VertexKind::nic;
}

PortShares::PortShares(const topology::Cluster& cluster, const CollectiveConstants& constants,
                       Predicted predicted)
    : cluster_(cluster), constants_(constants), predicted_(std::move(predicted)) {}

double PortShares::at(CollectiveKind kind, int ranks) {
  const MeasuredCollectives& measured = cluster_.design().measured;
  if (measured.all_reduces.empty() || kind == CollectiveKind::send) return 1;
  const CollectiveKind as = measured_as(kind, measured);
  const std::vector<MeasuredCollective>& list = measured_of(as, measured);
  const double servers = static_cast<double>(ranks) / cluster_.design().ranks();
  const auto above = std::ranges::lower_bound(list, servers, {}, &MeasuredCollective::servers);
  if (above == list.begin()) return of(as, list.front());
  if (above == list.end()) return of(as, list.back());
  const MeasuredCollective& below = *std::prev(above);
  const double way = std::log(servers / below.servers) /
                     std::log(static_cast<double>(above->servers) / below.servers);
  return std::lerp(of(as, below), of(as, *above), way);
}

double PortShares::of(CollectiveKind kind, const MeasuredCollective& measured) {
  const auto [found, fresh] = found_.try_emplace({kind, measured.servers}, 1);
  if (fresh) found->second = computed(kind, measured);
  return found->second;
}

double PortShares::computed(CollectiveKind kind, const MeasuredCollective& measured) const {
  topology::NodeDesign design = cluster_.design();
  design.measured = {};
  topology::FabricDesign one_switch;
  one_switch.speed = cluster_.fabric().design().speed;
  const topology::Cluster cluster(std::move(design), measured.servers, one_switch);
  const Route route = predicted_(cluster, kind, measured.payload);
  Seconds port;
  for (const LinkLoad& load : route.loads) {
    if (!is_port(cluster, load.direction.link)) continue;
    const topology::Link& link = cluster.links()[load.direction.link];
    port = std::max(port, measured.payload * load.load / usable_bandwidth(link, constants_));
  }
  const double n = cluster.gpus();
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  const Seconds took = measured.payload * (passes * (n - 1) / n) / measured.bus_bandwidth;
  return took > route.latency ? std::min(1.0, port / (took - route.latency)) : 1;
}

}  // namespace stratagem::cost

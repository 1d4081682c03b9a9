// Holds predicted all-reduces to measured ones.
#include "cost/port_shares.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "cost/collectives.hpp"
#include "topology/reductions.hpp"

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
  const auto [found, fresh] = found_.try_emplace(servers, 1);
  if (fresh) found->second = of(topology::reduction_over(measured, servers));
  return found->second;
}

double PortShares::of(const MeasuredReduction& measured) const {
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
  return took > route.latency ? std::min(1.0, port / (took - route.latency)) : 1;
}

}  // namespace stratagem::cost

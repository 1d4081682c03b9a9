// Chooses between closed form and NCCL's model, and puts the latter together.
#include "cost/collectives.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/input_error.hpp"
#include "cost/measured_times.hpp"
#include "cost/nccl/correction.hpp"
#include "cost/nccl/route.hpp"

namespace stratagem::cost {

CollectiveConstants as_searched(const topology::NodeDesign& design) {
  CollectiveConstants constants;
  constants.nvlink_efficiency.value = nccl::nvlink_share(design);
  return constants;
}

namespace {

/// The routes of another cluster, of which nothing was measured.
PortShares::Predicted predicted_by(const CollectiveConstants& constants,
                                   const std::string& version) {
  return
      [constants, version](const topology::Cluster& cluster, CollectiveKind kind, Bytes payload) {
        std::vector<int> ranks(static_cast<std::size_t>(cluster.gpus()));
        std::iota(ranks.begin(), ranks.end(), 0);
        return Collectives(cluster, constants, version).route(kind, ranks, payload);
      };
}

}  // namespace

Collectives::Collectives(const topology::Cluster& cluster, const CollectiveConstants& constants)
    : Collectives(cluster, constants, "") {}

Collectives::Collectives(const topology::Cluster& cluster, const CollectiveConstants& constants,
                         const std::string& version)
    : cluster_(cluster),
      constants_(constants),
      port_shares_(cluster, constants, predicted_by(constants, version)) {
  if (cluster.design().on_processors()) check_processors(version);
  if (version.empty()) return;
  nccl_ = &nccl::constants_of(version);
  communicators_.emplace(cluster_, *nccl_);
}

void Collectives::check_processors(const std::string& version) const {
  const std::string server = cluster_.design().name + ", whose ranks are processors";
  if (!version.empty())
    throw InputError("", "/cluster", "GPUs, for collectives of NCCL " + version, server);
  if (!constants_.memory_efficiency) {
    throw InputError("", "/profile", "a profile with memory_efficiency under collective",
                     "none, for " + server);
  }
}

std::vector<Routed> Collectives::routes(CollectiveKind kind, const std::vector<int>& ranks,
                                        const std::vector<Bytes>& payloads) {
  const topology::Footprint here = topology::footprint(cluster_, ranks);
  Alike& alike = alike_[here.shape];
  if (alike.ranks.empty()) {
    alike.ranks = ranks;
    alike.footprint = here;
  }
  auto found = alike.routes.find({kind, payloads});
  if (found == alike.routes.end()) {
    std::vector<Alike::Placed> kept;
    for (Routed& routed : find_routes(kind, payloads, alike)) {
      crowd_ports(kind, ranks, routed.route);
      std::vector<topology::LinkId> links;
      for (const LinkLoad& load : routed.route.loads) links.push_back(load.direction.link);
      kept.push_back({std::move(routed), topology::placed(cluster_, alike.footprint, links)});
    }
    found = alike.routes.emplace(std::pair{kind, payloads}, std::move(kept)).first;
  }
  std::vector<Routed> result;
  result.reserve(found->second.size());
  for (const Alike::Placed& route : found->second) result.push_back(moved(route, here));
  return result;
}

void Collectives::crowd_ports(CollectiveKind kind, const std::vector<int>& ranks, Route& route) {
  const auto on_port = [&](const LinkLoad& load) { return is_port(cluster_, load.direction.link); };
  if (std::ranges::none_of(route.loads, on_port)) return;
  const double share = port_shares_.at(kind, static_cast<int>(ranks.size()));
  for (LinkLoad& load : route.loads) {
    if (on_port(load)) load.load /= share;
  }
}

Routed Collectives::moved(const Alike::Placed& route, const topology::Footprint& to) const {
  Routed result = route.routed;
  std::vector<LinkLoad>& loads = result.route.loads;
  for (std::size_t i = 0; i < loads.size(); ++i)
    loads[i].direction.link = topology::link_at(cluster_, to, route.links[i]);
  std::ranges::sort(loads, {}, &LinkLoad::direction);
  return result;
}

std::vector<Routed> Collectives::find_routes(CollectiveKind kind,
                                             const std::vector<Bytes>& payloads, Alike& alike) {
  if (const CollectiveTimes* times = times_of(kind, alike.ranks)) {
    std::vector<Routed> result;
    const Seconds slower = beyond_measured(kind, alike.ranks);
    for (const Bytes payload : payloads) {
      result.push_back(
          {measured_route(*times, static_cast<int>(alike.ranks.size()), payload), {payload}});
      result.back().route.latency += slower;
    }
    return result;
  }
  if (nccl_ == nullptr || alike.ranks.size() < 2)
    return {{ring_route(kind, cluster_, alike.ranks, constants_), {}}};
  return nccl_routes(kind, payloads, alike);
}

std::vector<Routed> Collectives::nccl_routes(CollectiveKind kind,
                                             const std::vector<Bytes>& payloads, Alike& alike) {
  if (!alike.communicator) alike.communicator = communicators_->of(alike.ranks);
  const nccl::Communicator& communicator = *alike.communicator;
  std::map<std::tuple<nccl::Algorithm, Seconds, BytesPerSecond>, Routed> routed_by;
  for (const Bytes payload : payloads) {
    const nccl::Estimate chosen = estimate(kind, communicator, payload);
    Routed& routed = routed_by[{chosen.algorithm, chosen.latency, chosen.bandwidth}];
    if (routed.payloads.empty()) {
      const Carried& carried = carried_by(kind, chosen.algorithm, alike);
      routed.route = {
          .loads = carried.loads,
          .latency = chosen.latency +
                     nccl::beyond_steps(kind, chosen.algorithm, communicator, *nccl_, carried.hops),
          .limit = chosen.bandwidth};
    }
    routed.payloads.push_back(payload);
  }
  std::vector<Routed> result;
  result.reserve(routed_by.size());
  for (auto& [key, routed] : routed_by) result.push_back(std::move(routed));
  return result;
}

const CollectiveTimes* Collectives::times_of(CollectiveKind kind,
                                             const std::vector<int>& ranks) const {
  if (constants_.times.empty() || ranks.size() < 2 || concerns_host(kind)) return nullptr;
  if (!cluster_.design().on_processors()) return nullptr;
  const int node = cluster_.node_of(ranks.front());
  if (std::ranges::any_of(ranks, [&](int rank) { return cluster_.node_of(rank) != node; }))
    return nullptr;
  const auto found = constants_.times.find(to_text(timed_as(kind)));
  if (found == constants_.times.end())
    throw InputError("", "/profile", "times of " + to_text(timed_as(kind)) + " under collective",
                     "none");
  return &found->second;
}

Seconds Collectives::beyond_measured(CollectiveKind kind, const std::vector<int>& ranks) const {
  const Seconds hop = ring_loads(kind, cluster_, ranks).hops.near;
  return ring_steps(kind, static_cast<int>(ranks.size()), 1).near *
         excess(hop, constants_.node_link_latency);
}

Route Collectives::route(CollectiveKind kind, const std::vector<int>& ranks, Bytes payload) {
  return routes(kind, ranks, {payload}).front().route;
}

std::pair<Route, Bytes> Collectives::all_to_all(const std::vector<int>& ranks, const Parts& parts) {
  UnequalLoads unequal = all_to_all_loads(cluster_, ranks, parts);
  Route result = route(CollectiveKind::all_to_all, ranks, unequal.payload);
  if (times_of(CollectiveKind::all_to_all, ranks) == nullptr) {
    result.loads = std::move(unequal.loads);
    crowd_ports(CollectiveKind::all_to_all, ranks, result);
  }
  return {std::move(result), unequal.payload};
}

Seconds Collectives::alone(const Route& route, Bytes payload) const {
  Seconds slowest = payload / route.limit;
  for (const LinkLoad& load : route.loads) {
    const topology::Link& link = cluster_.links()[load.direction.link];
    slowest = std::max(slowest, payload * load.load / usable(link, load.direction.forward));
  }
  return route.latency + slowest;
}

nccl::Estimate Collectives::estimate(CollectiveKind kind, const nccl::Communicator& communicator,
                                     Bytes payload) const {
  if (takes_one_step(kind)) return nccl::direct_estimate(communicator, *nccl_);
  const auto chosen =
      nccl::choose(nccl::estimates(kind, communicator, *nccl_), kind, payload, communicator);
  const double nvlink =
      constants_.nvlink_efficiency.value * nvlink_factor() / nccl::nvlink_share(cluster_.design());
  return nccl::corrected(chosen, communicator, constants_.nccl, nvlink);
}

const Carried& Collectives::carried_by(CollectiveKind kind, nccl::Algorithm algorithm,
                                       Alike& alike) const {
  const auto [found, fresh] = alike.carried.try_emplace({kind, algorithm});
  if (fresh) {
    found->second =
        nccl::channel_loads(kind, algorithm, cluster_, alike.ranks, *alike.communicator);
  }
  return found->second;
}

BytesPerSecond Collectives::usable(const topology::Link& link, bool forward) const {
  const BytesPerSecond rate = usable_bandwidth(link, constants_, forward);
  return link.kind == topology::LinkKind::nvlink ? nvlink_factor() * rate : rate;
}

double Collectives::nvlink_factor() const {
  return nccl_ != nullptr && constants_.nccl ? constants_.nccl->bandwidth_factor.value : 1;
}

}  // namespace stratagem::cost

// Sizes a fat tree: its switches, its cables, and how traffic crosses it.
#include "topology/fabric.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/input_error.hpp"
#include "topology/refuse.hpp"

namespace stratagem::topology {

namespace {

/// Rounds that are meant to be whole do not become one more by the last bit.
int ceiling(double value) { return static_cast<int>(std::ceil(value - 1e-9)); }
int whole(double value) { return static_cast<int>(std::floor(value + 1e-9)); }

/// The most ports down that leave enough ports up: down + ceil(down / ratio) <= radix.
int ports_down(int radix, double ratio) {
  int down = whole(radix * ratio / (1 + ratio));
  while (down > 1 && down + ceiling(down / ratio) > radix) --down;
  return down;
}

/// The fewest switches that all `cables` of each of `groups` spread over evenly, with `ports` each.
int switches_above(int groups, int cables, int ports) {
  for (int number = 1; number < cables; ++number) {
    if (cables % number == 0 && groups * (cables / number) <= ports) return number;
  }
  return cables;
}

void check(const FabricDesign& design) {
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  const auto duration = [](Seconds time) { return std::isfinite(time.value) && time.value >= 0; };
  const NetworkSpeed& speed = design.speed;
  if (!positive(speed.port.value))
    refuse("network ports with a bandwidth above 0", std::to_string(speed.port.value));
  if (!duration(speed.port_latency) || !duration(speed.switch_latency))
    refuse("network ports with a latency", std::to_string(speed.port_latency.value));
  if (design.kind == FabricKind::single_switch) return;
  if (speed.radix < 2) refuse("switches of at least 2 ports", std::to_string(speed.radix));
  for (const double ratio : {design.oversubscription, design.core_oversubscription}) {
    if (!std::isfinite(ratio) || ratio < 1)
      refuse("an oversubscription of 1 or more", std::to_string(ratio));
  }
}

}  // namespace

Fabric::Fabric(FabricDesign design, int nodes, int nics) : design_(std::move(design)), nics_(nics) {
  check(design_);
  leaves_ = {.groups = 1, .switches = 1, .cables = 0, .up = {}};
  ports_per_leaf_ = nodes * nics;
  leaves_per_pod_ = 1;
  if (design_.kind == FabricKind::single_switch || nics == 0) return;
  build_leaves(nodes, nics);
  if (leaves_.groups > 1) build_spines();
  if (spines_.groups > 1) build_cores();
}

void Fabric::build_leaves(int nodes, int nics) {
  const int radix = design_.speed.radix;
  const int most = ports_down(radix, design_.oversubscription);
  const int asked = design_.ports_per_leaf;
  ports_per_leaf_ = asked > 0 ? asked : most;
  if (ports_per_leaf_ > most) {
    refuse("at most " + std::to_string(most) + " adapters on a leaf of " + std::to_string(radix) +
               " ports with an oversubscription of " + std::to_string(design_.oversubscription),
           std::to_string(asked));
  }
  const int rails = design_.rails;
  if (rails > 0) {
    const int per_rail = (nics + rails - 1) / rails;
    if (rails > nics) refuse("at most a rail per adapter of a node", std::to_string(rails));
    nodes_per_unit_ = ports_per_leaf_ / per_rail;
    if (nodes_per_unit_ == 0)
      refuse("leaves with ports for all adapters of a rail of one node", std::to_string(rails));
    leaves_.groups = rails * ((nodes + nodes_per_unit_ - 1) / nodes_per_unit_);
    ports_per_leaf_ = std::min(nodes, nodes_per_unit_) * per_rail;
  } else {
    if (asked == 0 && nics <= ports_per_leaf_) ports_per_leaf_ -= ports_per_leaf_ % nics;
    ports_per_leaf_ = std::min(ports_per_leaf_, nodes * nics);
    leaves_.groups = (nodes * nics + ports_per_leaf_ - 1) / ports_per_leaf_;
  }
}

void Fabric::build_spines() {
  const int radix = design_.speed.radix;
  leaves_.cables = ceiling(ports_per_leaf_ / design_.oversubscription);
  leaves_.up = ports_per_leaf_ / design_.oversubscription * design_.speed.port;
  leaves_per_pod_ = leaves_.groups;
  int ports = radix;
  if (leaves_.groups > radix) {  // a spine has a port for each leaf of its pod, and others up
    ports = ports_down(radix, design_.core_oversubscription);
    const int together = std::max(design_.rails, 1);
    leaves_per_pod_ = ports - ports % together;
    if (leaves_per_pod_ == 0)
      refuse("spines with ports for the rails of a unit", std::to_string(design_.rails));
  }
  spines_ = {.groups = (leaves_.groups + leaves_per_pod_ - 1) / leaves_per_pod_,
             .switches = switches_above(leaves_per_pod_, leaves_.cables, ports),
             .cables = 0,
             .up = {}};
}

void Fabric::build_cores() {
  const int radix = design_.speed.radix;
  const double up = leaves_per_pod_ / design_.core_oversubscription;
  spines_.cables = ceiling(leaves_.cables * up);
  spines_.up = up * leaves_.up;
  if (spines_.groups > radix) {
    refuse("at most " + std::to_string(radix) + " pods of " + std::to_string(leaves_per_pod_) +
               " leaves, as many as a core has ports",
           std::to_string(spines_.groups));
  }
  cores_ = {.groups = 1,
            .switches = switches_above(spines_.groups, spines_.cables, radix),
            .cables = 0,
            .up = {}};
}

std::vector<std::string> Fabric::names() const {
  if (design_.kind == FabricKind::single_switch) return {"fabric"};
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(leaves_.groups) + spines_.groups + 1);
  for (int leaf = 0; leaf < leaves_.groups; ++leaf) names.push_back("leaf" + std::to_string(leaf));
  for (int pod = 0; pod < spines_.groups; ++pod) names.push_back("spine" + std::to_string(pod));
  if (cores_.groups > 0) names.emplace_back("core");
  return names;
}

std::vector<Fabric::Uplink> Fabric::uplinks() const {
  std::vector<Uplink> links;
  if (spines_.groups == 0) return links;
  for (int leaf = 0; leaf < leaves_.groups; ++leaf) {
    links.push_back({.below = leaf,
                     .above = leaves_.groups + pod_of(leaf),
                     .cables = leaves_.cables,
                     .bandwidth = leaves_.up});
  }
  if (cores_.groups == 0) return links;
  for (int pod = 0; pod < spines_.groups; ++pod) {
    links.push_back({.below = leaves_.groups + pod,
                     .above = leaves_.groups + spines_.groups,
                     .cables = spines_.cables,
                     .bandwidth = spines_.up});
  }
  return links;
}

int Fabric::leaf_of(int node, int nic) const {
  expects(nic >= 0 && nic < nics_, "an adapter of the node");
  if (leaves_.groups == 1) return 0;
  if (design_.rails > 0) return node / nodes_per_unit_ * design_.rails + nic % design_.rails;
  return (node * nics_ + nic) / ports_per_leaf_;
}

std::vector<Fabric::Flow> Fabric::crossing(
    const std::vector<std::pair<int, double>>& entering) const {
  if (spines_.groups == 0) return {};
  constexpr double nothing = 1e-12;  // what is left of shares that cancel
  std::map<int, double> leaves;
  std::map<int, double> pods;
  for (const auto& [leaf, amount] : entering) {
    leaves[leaf] += amount;
    pods[pod_of(leaf)] += amount;
  }
  std::vector<Flow> flows;
  for (const auto& [leaf, amount] : leaves) {
    if (std::abs(amount) > nothing) flows.push_back({leaf, amount});
  }
  for (const auto& [pod, amount] : pods) {
    if (std::abs(amount) > nothing) flows.push_back({leaves_.groups + pod, amount});
  }
  return flows;
}

Seconds Fabric::latency(const std::vector<Flow>& crossing) const {
  if (crossing.empty()) return {};
  const bool over_cores = std::ranges::any_of(
      crossing, [&](const Flow& flow) { return flow.uplink >= leaves_.groups; });
  return 2.0 * (over_cores ? 2 : 1) * design_.speed.switch_latency;
}

}  // namespace stratagem::topology

// Numbers servers, leaves and pods by their first appearance.
#include "topology/footprint.hpp"

#include <unordered_map>

#include "base/input_error.hpp"

namespace stratagem::topology {

namespace {

/// Things in the order in which they come, and the place of each.
class Places {
 public:
  Places() = default;
  explicit Places(const std::vector<int>& things) {
    for (const int thing : things) add(thing);
  }

  /// The place of a thing, which is added if it is new.
  int add(int thing) {
    const auto [found, fresh] = places_.emplace(thing, static_cast<int>(things_.size()));
    if (fresh) things_.push_back(thing);
    return found->second;
  }

  [[nodiscard]] int at(int thing) const {
    const auto found = places_.find(thing);
    expects(found != places_.end(), "a link of what the ranks stand on");
    return found->second;
  }

  [[nodiscard]] const std::vector<int>& things() const { return things_; }

 private:
  std::vector<int> things_;
  std::unordered_map<int, int> places_;
};

/// The links of a cluster in the order of their numbers.
struct Order {
  LinkId inside;      ///< of one node
  LinkId first_port;  ///< ports follow the links of all nodes
  int nics;           ///< ports of a node
  LinkId first_leaf;  ///< then uplinks of leaves
  LinkId first_pod;   ///< then those of pods

  explicit Order(const Cluster& cluster)
      : inside(static_cast<LinkId>(cluster.design().links.size())),
        first_port(cluster.nodes() * inside),
        nics(cluster.nics_per_node()),
        first_leaf(first_port + cluster.nodes() * nics),
        first_pod(first_leaf + cluster.fabric().leaves().groups) {}
};

void add_switches(Footprint& result, const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric();
  if (fabric.spines().groups == 0) return;
  Places leaves, pods;
  for (const int node : result.nodes) {
    for (int nic = 0; nic < cluster.nics_per_node(); ++nic) {
      const int leaf = fabric.leaf_of(node, nic);
      result.shape.push_back(leaves.add(leaf));
      result.shape.push_back(pods.add(fabric.pod_of(leaf)));
    }
  }
  result.leaves = leaves.things();
  result.pods = pods.things();
}

}  // namespace

Footprint footprint(const Cluster& cluster, const std::vector<int>& ranks) {
  Footprint result;
  result.shape.reserve(ranks.size());
  Places nodes;
  for (const int rank : ranks) {
    const int place = nodes.add(cluster.node_of(rank));
    result.shape.push_back(place * cluster.gpus_per_node() + rank % cluster.gpus_per_node());
  }
  result.nodes = nodes.things();
  add_switches(result, cluster);
  return result;
}

std::vector<PlacedLink> placed(const Cluster& cluster, const Footprint& footprint,
                               const std::vector<LinkId>& links) {
  using enum PlacedLink::Owner;
  const Order order(cluster);
  const Places nodes(footprint.nodes);
  const Places leaves(footprint.leaves);
  const Places pods(footprint.pods);
  std::vector<PlacedLink> result;
  result.reserve(links.size());
  for (const LinkId link : links) {
    if (link < order.first_port) {
      result.push_back({node, nodes.at(link / order.inside), link % order.inside});
    } else if (link < order.first_leaf) {
      const LinkId port = link - order.first_port;
      result.push_back({node, nodes.at(port / order.nics), order.inside + port % order.nics});
    } else if (link < order.first_pod) {
      result.push_back({leaf, leaves.at(link - order.first_leaf), 0});
    } else {
      result.push_back({pod, pods.at(link - order.first_pod), 0});
    }
  }
  return result;
}

LinkId link_at(const Cluster& cluster, const Footprint& footprint, const PlacedLink& link) {
  using enum PlacedLink::Owner;
  const Order order(cluster);
  if (link.owner == leaf) return order.first_leaf + footprint.leaves[link.place];
  if (link.owner == pod) return order.first_pod + footprint.pods[link.place];
  const int server = footprint.nodes[link.place];
  return link.local < order.inside
             ? server * order.inside + link.local
             : order.first_port + server * order.nics + (link.local - order.inside);
}

}  // namespace stratagem::topology

// Which servers and switches ranks stand on. Ranks that stand alike have the same routes, but for
// the numbers of servers and switches.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/cluster.hpp"

namespace stratagem::topology {

/// The servers of some ranks, and the leaves and pods of the fabric that adapters of these servers
/// are cabled to, each in the order in which the ranks come to it. Of two lists of ranks with equal
/// `shape`, the routes of one become those of the other when servers, leaves and pods at the same
/// places of these lists take each other's numbers.
struct Footprint {
  std::vector<int> shape;
  std::vector<int> nodes;
  std::vector<int> leaves;  ///< empty where there are no spines; pods likewise
  std::vector<int> pods;
};

Footprint footprint(const Cluster& cluster, const std::vector<int>& ranks);

/// A link, by the place of its server, leaf or pod in a footprint.
struct PlacedLink {
  enum class Owner : std::uint8_t { node, leaf, pod };
  Owner owner = Owner::node;
  int place = 0;
  LinkId local = 0;  ///< of a node: a link of its design, or after those the port of an adapter
};

/// The links must belong to the footprint.
std::vector<PlacedLink> placed(const Cluster& cluster, const Footprint& footprint,
                               const std::vector<LinkId>& links);
LinkId link_at(const Cluster& cluster, const Footprint& footprint, const PlacedLink& link);

}  // namespace stratagem::topology

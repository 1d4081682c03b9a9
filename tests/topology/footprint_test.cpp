// Ranks that stand alike have the same routes on other servers, leaves and pods.
#include "topology/footprint.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "tests/catch.hpp"
#include "topology/presets.hpp"

namespace stratagem::topology {

namespace {

/// Servers under leaves of four adapters each: with two rails two servers share leaves, without
/// half a server does. A switch has few ports, so that there are pods.
Cluster tree(int rails) {
  NodeDesign design{.name = "four", .gpu = "test", .vertices = {}, .links = {}};
  std::vector<VertexId> nics;
  const VertexId hub = design.add(VertexKind::nv_switch, "switch");
  for (int i = 0; i < 4; ++i) {
    const VertexId gpu = design.add(VertexKind::gpu, "gpu" + std::to_string(i));
    design.join(gpu, hub, LinkKind::nvlink, 1, 25_GBps, 1_us);
    design.join(gpu, design.add(VertexKind::nic, "nic" + std::to_string(i)), LinkKind::pcie, 1,
                16_GBps, 1_us);
  }
  FabricDesign fabric{.kind = FabricKind::fat_tree, .speed = network_speed("EDR"), .rails = rails};
  fabric.speed.radix = 8;
  fabric.ports_per_leaf = 4;
  return {design, 16, fabric};
}

/// Links of a route, with shares summed: both ends may name a link.
std::map<Direction, double> links_of(const std::vector<Share>& route) {
  std::map<Direction, double> result;
  for (const Share& share : route) result[share.direction] += share.share;
  return result;
}

}  // namespace

TEST_CASE("a route moves with the servers, leaves and pods that it stands on") {
  std::mt19937 random(3);
  int moved = 0;
  int over_pods = 0;
  for (const int rails : {0, 2}) {
    const Cluster cluster = tree(rails);
    REQUIRE(cluster.fabric().cores().groups == 1);
    std::uniform_int_distribution<int> any(0, cluster.gpus() - 1);
    std::map<std::vector<int>, std::pair<std::vector<int>, Footprint>> first;
    for (int i = 0; i < 2000; ++i) {
      const std::vector<int> ranks = {any(random), any(random)};
      const Footprint here = footprint(cluster, ranks);
      const auto [known, fresh] = first.emplace(here.shape, std::pair{ranks, here});
      const auto& [others, there] = known->second;
      std::map<Direction, double> expected;
      for (const auto& [direction, share] : links_of(cluster.route(others[0], others[1]))) {
        const PlacedLink link = placed(cluster, there, {direction.link}).front();
        CHECK(link_at(cluster, there, link) == direction.link);
        if (link.owner == PlacedLink::Owner::pod) ++over_pods;
        expected[{link_at(cluster, here, link), direction.forward}] = share;
      }
      CHECK(links_of(cluster.route(ranks[0], ranks[1])) == expected);
      CHECK(cluster.latency(ranks[0], ranks[1]) == cluster.latency(others[0], others[1]));
      if (!fresh && others != ranks) ++moved;
    }
  }
  CHECK(moved > 2000);
  CHECK(over_pods > 200);
}

TEST_CASE("ranks stand alike only where their servers share leaves and pods alike") {
  // With two rails, servers 0 and 1 share two leaves, and 2 and 3 two others. A pod has two such
  // pairs.
  const Cluster cluster = tree(2);
  const auto shape = [&](int from, int to) { return footprint(cluster, {4 * from, 4 * to}).shape; };
  CHECK(shape(0, 1) == shape(2, 3));
  CHECK(shape(0, 2) == shape(3, 1));
  CHECK(shape(0, 1) != shape(1, 2));
  CHECK(cluster.route(0, 4).size() < cluster.route(4, 8).size());
  // Under one switch all pairs of servers are alike, but not all pairs of GPUs.
  const Cluster flat(cluster.design(), 4, 12.5_GBps, 1_us);
  CHECK(footprint(flat, {0, 4}).shape == footprint(flat, {12, 8}).shape);
  CHECK(footprint(flat, {0, 4}).shape != footprint(flat, {0, 5}).shape);
  CHECK(footprint(flat, {0, 4}).shape != footprint(flat, {0, 1}).shape);
}

}  // namespace stratagem::topology

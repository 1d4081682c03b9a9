// What one object has found for some ranks serves others that stand alike.
#include "cost/collectives.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"
#include "topology/presets.hpp"

namespace stratagem::cost {

namespace {

topology::NodeDesign dgx_a100() {
  return std::ranges::find(topology::presets(), "dgx-a100", &topology::Preset::name)
      ->build(1)
      .design();
}

void check_equal(const std::vector<Routed>& found, const std::vector<Routed>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].payloads == expected[i].payloads);
    CHECK(found[i].route.latency == expected[i].route.latency);
    CHECK(found[i].route.limit == expected[i].route.limit);
    const auto& loads = found[i].route.loads;
    REQUIRE(loads.size() == expected[i].route.loads.size());
    for (std::size_t l = 0; l < loads.size(); ++l) {
      CHECK(loads[l].direction == expected[i].route.loads[l].direction);
      CHECK(loads[l].load == expected[i].route.loads[l].load);
    }
  }
}

/// As many GPUs of each of some servers in any order, as communicators have them.
std::vector<int> any_ranks(const topology::Cluster& cluster, std::mt19937& random) {
  std::vector<int> nodes(cluster.nodes());
  for (int i = 0; i < cluster.nodes(); ++i) nodes[i] = i;
  std::ranges::shuffle(nodes, random);
  nodes.resize(std::uniform_int_distribution<int>(1, 3)(random));
  const int each = 1 << std::uniform_int_distribution<int>(nodes.size() == 1 ? 1 : 0, 3)(random);
  const int first =
      each * std::uniform_int_distribution<int>(0, cluster.gpus_per_node() / each - 1)(random);
  std::vector<int> ranks;
  for (const int node : nodes) {
    for (int i = 0; i < each; ++i) ranks.push_back(node * cluster.gpus_per_node() + first + i);
  }
  return ranks;
}

}  // namespace

TEST_CASE("routes are the same whether other ranks were asked for before or not") {
  const CollectiveConstants constants =
      read_profile("scenarios/profiles/a100-sxm4-80gb.json").collective;
  const topology::NodeDesign design = dgx_a100();
  topology::FabricDesign rails{
      .kind = topology::FabricKind::fat_tree, .speed = topology::network_speed("HDR"), .rails = 8};
  rails.ports_per_leaf = 2;  // so that every second server is under other leaves
  topology::FabricDesign tree = rails;
  tree.rails = 0;
  tree.ports_per_leaf =
      5;  // a server's adapters are under two leaves or three; the last is not full
  std::mt19937 random(5);
  for (const topology::Cluster& cluster :
       {topology::Cluster(design, 6, 25_GBps, 1_us), topology::Cluster(design, 6, rails),
        topology::Cluster(design, 6, tree)}) {
    for (const char* version : {"", "2.18.6"}) {
      Collectives asked_for_all(cluster, constants, version);
      for (int i = 0; i < 60; ++i) {
        const std::vector<int> ranks = any_ranks(cluster, random);
        const auto check = [&](CollectiveKind kind, const std::vector<int>& of) {
          Collectives asked_once(cluster, constants, version);
          check_equal(asked_for_all.routes(kind, of, {64_KiB, 1_MiB, 256_MiB}),
                      asked_once.routes(kind, of, {64_KiB, 1_MiB, 256_MiB}));
        };
        for (const auto kind :
             {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::all_to_all})
          if (ranks.size() > 1) check(kind, ranks);
        if (ranks.size() > 1) check(CollectiveKind::send, {ranks.front(), ranks.back()});
        check(CollectiveKind::to_host, {ranks.front()});
      }
    }
  }
}

}  // namespace stratagem::cost

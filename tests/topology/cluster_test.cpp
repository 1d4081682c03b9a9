// Routes on small made-up nodes, what every cluster promises, and what is refused.
#include "topology/cluster.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/topology/flow.hpp"
#include "topology/presets.hpp"

namespace stratagem::topology {

namespace {

Cluster one_node(const NodeDesign& design) { return {design, 1, 10_GBps, 1_us}; }

/// Two GPUs with an adapter each, joined by a cable.
NodeDesign pair_of_gpus() {
  NodeDesign design{.name = "pair", .gpu = "test", .vertices = {}, .links = {}};
  const VertexId gpu0 = design.add(VertexKind::gpu, "gpu0");
  const VertexId gpu1 = design.add(VertexKind::gpu, "gpu1");
  const VertexId nic0 = design.add(VertexKind::nic, "nic0");
  const VertexId nic1 = design.add(VertexKind::nic, "nic1");
  design.join(gpu0, gpu1, LinkKind::nvlink, 2, 25_GBps, 3_us);
  design.join(gpu0, nic0, LinkKind::pcie, 1, 16_GBps, 2_us);
  design.join(nic1, gpu1, LinkKind::pcie, 1, 16_GBps, 2_us);
  return design;
}

std::string refusal(const NodeDesign& design, int nodes) {
  try {
    const Cluster cluster(design, nodes, 10_GBps, 1_us);
  } catch (const InputError& error) {
    return error.expected + ", found " + error.found;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a message divides in proportion to the bandwidth of the links that lead on") {
  // gpu0 -> {switch0 by one cable, switch1 by three} -> gpu1: a quarter and three quarters,
  // although switch0 would go on faster.
  NodeDesign design{.name = "diamond", .gpu = "test", .vertices = {}, .links = {}};
  const VertexId gpu0 = design.add(VertexKind::gpu, "gpu0");
  const VertexId gpu1 = design.add(VertexKind::gpu, "gpu1");
  const VertexId switch0 = design.add(VertexKind::nv_switch, "switch0");
  const VertexId switch1 = design.add(VertexKind::nv_switch, "switch1");
  design.join(gpu0, switch0, LinkKind::nvlink, 1, 25_GBps, 1_us);
  design.join(gpu0, switch1, LinkKind::nvlink, 3, 25_GBps, 1_us);
  design.join(gpu1, switch0, LinkKind::nvlink, 2, 25_GBps, 1_us);
  design.join(gpu1, switch1, LinkKind::nvlink, 2, 25_GBps, 1_us);
  const auto shares = one_node(design).route(0, 1);
  REQUIRE(shares.size() == 4);
  CHECK(shares[0].direction == Direction{.link = 0, .forward = true});
  CHECK(shares[0].share == 0.25);
  CHECK(shares[1].direction == Direction{.link = 1, .forward = true});
  CHECK(shares[1].share == 0.75);
  CHECK(shares[2].direction == Direction{.link = 2, .forward = false});
  CHECK(shares[2].share == 0.25);
  CHECK(shares[3].direction == Direction{.link = 3, .forward = false});
  CHECK(shares[3].share == 0.75);
}

TEST_CASE("two links between the same two vertices are two paths") {
  NodeDesign design{.name = "double", .gpu = "test", .vertices = {}, .links = {}};
  const VertexId gpu0 = design.add(VertexKind::gpu, "gpu0");
  const VertexId gpu1 = design.add(VertexKind::gpu, "gpu1");
  design.join(gpu0, gpu1, LinkKind::nvlink, 1, 25_GBps, 1_us);
  design.join(gpu1, gpu0, LinkKind::nvlink, 1, 75_GBps, 1_us);
  const auto shares = one_node(design).route(0, 1);
  REQUIRE(shares.size() == 2);
  CHECK(shares[0].share == 0.25);
  CHECK(shares[1].share == 0.75);
  CHECK_FALSE(shares[1].direction.forward);
}

TEST_CASE("a message has arrived when the slowest part of it has") {
  // Over either of two switches, half on each: 1 + 2 us, and 4 + 1 us.
  NodeDesign design{.name = "two ways", .gpu = "test", .vertices = {}, .links = {}};
  const VertexId gpu0 = design.add(VertexKind::gpu, "gpu0");
  const VertexId gpu1 = design.add(VertexKind::gpu, "gpu1");
  const VertexId quick = design.add(VertexKind::nv_switch, "quick");
  const VertexId slow = design.add(VertexKind::nv_switch, "slow");
  design.join(gpu0, quick, LinkKind::nvlink, 1, 25_GBps, 1_us);
  design.join(gpu1, quick, LinkKind::nvlink, 1, 25_GBps, 2_us);
  design.join(gpu0, slow, LinkKind::nvlink, 1, 25_GBps, 4_us);
  design.join(gpu1, slow, LinkKind::nvlink, 1, 25_GBps, 1_us);
  const Cluster cluster = one_node(design);
  CHECK(close(cluster.latency(0, 1), 5_us, 1e-12));
  CHECK(close(cluster.latency(1, 0), 5_us, 1e-12));
}

TEST_CASE("a path does not lead through another GPU, however near that is") {
  // NVLink 0 - 1 - 2 would be nearer than PCIe 0 - switch - 2.
  NodeDesign design{.name = "chain", .gpu = "test", .vertices = {}, .links = {}};
  const VertexId gpu0 = design.add(VertexKind::gpu, "gpu0");
  const VertexId gpu1 = design.add(VertexKind::gpu, "gpu1");
  const VertexId gpu2 = design.add(VertexKind::gpu, "gpu2");
  const VertexId pcie = design.add(VertexKind::pcie_switch, "pcie");
  design.join(gpu0, gpu1, LinkKind::nvlink, 1, 25_GBps, 1_us);
  design.join(gpu1, gpu2, LinkKind::nvlink, 1, 25_GBps, 1_us);
  design.join(gpu0, pcie, LinkKind::pcie, 1, 16_GBps, 2_us);
  design.join(gpu2, pcie, LinkKind::pcie, 1, 16_GBps, 2_us);
  const Cluster cluster = one_node(design);
  CHECK(touched(cluster, cluster.route(0, 2), VertexKind::gpu) == std::set<VertexId>{gpu0, gpu2});
  CHECK(kinds(cluster, cluster.route(0, 2)) == std::set{LinkKind::pcie});
  CHECK(close(cluster.latency(0, 2), 4_us, 1e-12));
  CHECK(kinds(cluster, cluster.route(0, 1)) == std::set{LinkKind::nvlink});
}

TEST_CASE("many links of a faster kind are preferred to one of a slower kind") {
  // Two GPUs joined twice: by one link of the slower kind, and by 21 of the faster kind through 20
  // switches.
  const auto [faster, slower] =
      GENERATE(std::pair{LinkKind::nvlink, LinkKind::c2c}, std::pair{LinkKind::c2c, LinkKind::pcie},
               std::pair{LinkKind::pcie, LinkKind::inter_socket},
               std::pair{LinkKind::inter_socket, LinkKind::network});
  NodeDesign design{.name = "detour", .gpu = "test", .vertices = {}, .links = {}};
  const VertexId gpu0 = design.add(VertexKind::gpu, "gpu0");
  const VertexId gpu1 = design.add(VertexKind::gpu, "gpu1");
  design.join(gpu0, gpu1, slower, 1, 1000_GBps, 0_us);
  VertexId last = gpu0;
  for (int i = 0; i < 20; ++i) {
    const VertexId next = design.add(VertexKind::pcie_switch, "switch");
    design.join(last, next, faster, 1, 1_GBps, 1_us);
    last = next;
  }
  design.join(last, gpu1, faster, 1, 1_GBps, 1_us);
  const Cluster cluster = one_node(design);
  CHECK(kinds(cluster, cluster.route(0, 1)) == std::set{faster});
  CHECK(cluster.route(0, 1).size() == 21);
  CHECK(close(cluster.latency(0, 1), 21_us, 1e-12));
}

TEST_CASE("links and vertices of a node are the design's, moved on, with fabric and ports last") {
  const Cluster cluster(pair_of_gpus(), 3, 10_GBps, 1_us);
  CHECK(cluster.gpus() == 6);
  CHECK(cluster.gpus_per_node() == 2);
  CHECK(cluster.node_of(3) == 1);
  REQUIRE(cluster.vertices().size() == 3 * 4 + 1);
  REQUIRE(cluster.links().size() == 3 * 3 + 3 * 2);
  CHECK(vertex(cluster, 4 + 2).name == "node1/nic0");
  CHECK(vertex(cluster, 4 + 2).node == 1);
  CHECK(vertex(cluster, 4 + 3).index == 1);
  CHECK(vertex(cluster, 12).kind == VertexKind::fabric);
  CHECK(vertex(cluster, 12).node == -1);
  // Node 2's second PCIe link is the design's link 2 with its ends 2 * 4 further on.
  CHECK(cluster.links()[2 * 3 + 2].a == 2 * 4 + 3);
  CHECK(cluster.links()[2 * 3 + 2].b == 2 * 4 + 1);
  // Ports: 9 links in nodes, then node 1's second port is the fourth.
  const Link& port = cluster.links()[9 + 3];
  CHECK(port.a == 4 + 3);
  CHECK(port.b == 12);
  CHECK(port.kind == LinkKind::network);
  CHECK(port.bandwidth == 10_GBps);
  CHECK(cluster.links()[0].bandwidth == 50_GBps);
}

TEST_CASE("a route across nodes goes by the nearest adapter of each end") {
  const Cluster cluster(pair_of_gpus(), 3, 10_GBps, 1_us);
  // GPU 1 = node 0's second, GPU 4 = node 2's first. Links: 2 (nic1 - gpu1, backward) of node 0,
  // port 9 + 1 out, port 9 + 4 in, and link 2 * 3 + 1 (gpu0 - nic0, backward) of node 2.
  const auto shares = cluster.route(1, 4);
  REQUIRE(shares.size() == 4);
  CHECK(shares[0].direction == Direction{.link = 2, .forward = false});
  CHECK(shares[1].direction == Direction{.link = 10, .forward = true});
  CHECK(shares[2].direction == Direction{.link = 13, .forward = false});
  CHECK(shares[3].direction == Direction{.link = 7, .forward = false});
  CHECK(close(cluster.latency(1, 4), 2 * (2_us + 1_us), 1e-12));
  CHECK(cluster.nearest_nics(4) == std::vector{0});
  CHECK(cluster.nearest_nics(5) == std::vector{1});
}

TEST_CASE("an adapter that a GPU reaches only through another GPU is not routed to") {
  const Cluster cluster(pair_of_gpus(), 2, 10_GBps, 1_us);
  CHECK(cluster.route_out(0, 0).size() == 2);
  CHECK_THROWS_AS(cluster.route_out(0, 1), BrokenPromise);
  CHECK_THROWS_AS(cluster.route_in(0, 1), BrokenPromise);
  CHECK_THROWS_AS(cluster.route_out(0, 2), BrokenPromise);
  CHECK_THROWS_AS(cluster.route(0, 4), BrokenPromise);
  CHECK_THROWS_AS(cluster.route(-1, 0), BrokenPromise);
}

TEST_CASE("GPUs of a node without a link between them use the network") {
  NodeDesign design = pair_of_gpus();
  design.links.erase(design.links.begin());
  const Cluster cluster = one_node(design);
  CHECK(touched(cluster, cluster.route(0, 1), VertexKind::fabric).size() == 1);
  CHECK(close(cluster.latency(0, 1), 2 * (2_us + 1_us), 1e-12));
}

TEST_CASE("nonsense is refused with what was expected") {
  NodeDesign design = pair_of_gpus();
  CHECK(refusal(design, 1) == "accepted");
  CHECK(refusal(design, 0) == "at least 1 node, found 0");
  CHECK(refusal(design, -3) == "at least 1 node, found -3");
  for (const Preset& preset : presets()) CHECK_THROWS_AS(preset.build(0), InputError);
  CHECK_THROWS_AS(Cluster(design, 1, 0_GBps, 1_us), InputError);
  CHECK_THROWS_AS(Cluster(design, 1, 10_GBps, -1 * 1_us), InputError);

  CHECK(refusal({.name = "empty", .gpu = "", .vertices = {}, .links = {}}, 1) ==
        "a node design with at least 1 GPU, found empty");

  NodeDesign own_fabric = design;
  own_fabric.add(VertexKind::fabric, "leaf");
  CHECK(refusal(own_fabric, 1) == "a node design without a fabric, found leaf");

  NodeDesign loop = design;
  loop.join(1, 1, LinkKind::nvlink, 1, 25_GBps, 1_us);
  CHECK(refusal(loop, 1) == "links between two vertices of the node, found link 1 - 1");
  NodeDesign dangling = design;
  dangling.join(1, 4, LinkKind::nvlink, 1, 25_GBps, 1_us);
  CHECK(refusal(dangling, 1) == "links between two vertices of the node, found link 1 - 4");
  NodeDesign no_cable = design;
  no_cable.join(0, 1, LinkKind::nvlink, 0, 25_GBps, 1_us);
  CHECK(refusal(no_cable, 1) == "links of at least 1 cable, found link 0 - 1");
  NodeDesign no_bandwidth = design;
  no_bandwidth.join(0, 1, LinkKind::nvlink, 1, 0_GBps, 1_us);
  CHECK(refusal(no_bandwidth, 1) == "links with a bandwidth above 0, found link 0 - 1");

  NodeDesign lone_gpu = design;
  lone_gpu.add(VertexKind::gpu, "gpu2");
  CHECK(refusal(lone_gpu, 1) ==
        "GPUs that reach each other without passing a third, found gpu2 to gpu0 of pair");

  // Without an adapter, one node will do, two will not.
  NodeDesign no_nic{.name = "island", .gpu = "test", .vertices = {}, .links = {}};
  no_nic.add(VertexKind::gpu, "gpu0");
  CHECK(refusal(no_nic, 1) == "accepted");
  CHECK(one_node(no_nic).nearest_nics(0).empty());
  CHECK(
      refusal(no_nic, 2) ==
      "GPUs that reach a network adapter without passing another, found gpu0 to fabric of island");
}

TEST_CASE("what leaves the source arrives at the target: every pair of every preset") {
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    const Cluster cluster = preset.build(2);
    const bool on_processors = cluster.design().on_processors();
    const VertexKind rank = on_processors ? VertexKind::cpu_rank : VertexKind::gpu;
    const auto gpus = all_of(cluster, rank);
    REQUIRE(static_cast<int>(gpus.size()) == cluster.gpus());
    const VertexId fabric = all_of(cluster, VertexKind::fabric).front();
    for (int from = 0; from < cluster.gpus(); ++from) {
      const VertexId source = gpus[static_cast<std::size_t>(from)];
      CHECK(cluster.route(from, from).empty());
      CHECK(cluster.latency(from, from) == 0_s);
      for (int to = 0; to < cluster.gpus(); ++to) {
        if (from == to) continue;
        INFO(from << " to " << to);
        const VertexId target = gpus[static_cast<std::size_t>(to)];
        const auto shares = cluster.route(from, to);
        REQUIRE(is_unit_flow(cluster, shares, source, target));
        REQUIRE(touched(cluster, shares, rank) == std::set{source, target});
        REQUIRE(touched(cluster, shares, VertexKind::fabric).size() ==
                (cluster.node_of(from) == cluster.node_of(to) ? 0U : 1U));
        REQUIRE(cluster.latency(from, to) > 0_s);
      }
      for (const int nic : cluster.nearest_nics(from)) {
        REQUIRE(is_unit_flow(cluster, cluster.route_out(from, nic), source, fabric));
        REQUIRE(is_unit_flow(cluster, cluster.route_in(from, nic), fabric, source));
        REQUIRE(touched(cluster, cluster.route_out(from, nic), VertexKind::nic).size() == 1);
      }
    }
  }
}

TEST_CASE("routes of node k are those of node 0, moved on by k nodes") {
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    const Cluster cluster = preset.build(3);
    const int size = cluster.gpus_per_node();
    const auto links = static_cast<int>(cluster.design().links.size());
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) {
        auto expected = cluster.route(from, to);
        for (Share& share : expected) share.direction.link += 2 * links;
        const auto actual = cluster.route(2 * size + from, 2 * size + to);
        REQUIRE(std::equal(actual.begin(), actual.end(), expected.begin(), expected.end(),
                           [](const Share& a, const Share& b) {
                             return a.direction == b.direction && a.share == b.share;
                           }));
      }
    }
  }
}

TEST_CASE("a cluster of 512 GPUs answers for all neighbours") {
  const Cluster cluster = presets()[2].build(32);
  REQUIRE(cluster.design().name == "DGX-2H");
  REQUIRE(cluster.gpus() == 512);
  // Of the 512 neighbours in a ring, 32 pairs cross from node to node.
  int crossings = 0;
  for (int gpu = 0; gpu < 512; ++gpu) {
    const auto shares = cluster.route(gpu, (gpu + 1) % 512);
    crossings += static_cast<int>(kinds(cluster, shares).count(LinkKind::network));
  }
  CHECK(crossings == 32);
}

TEST_CASE("copies of a cluster answer alike") {
  const Cluster cluster(pair_of_gpus(), 2, 10_GBps, 1_us);
  Cluster copy = presets().front().build(1);
  copy = cluster;
  CHECK(copy.design().name == "pair");
  CHECK(copy.route(0, 3).size() == cluster.route(0, 3).size());
}

}  // namespace stratagem::topology

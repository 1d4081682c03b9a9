// Fat trees against closed forms: bisection, oversubscription, rails, numbers of switches.
#include "topology/fabric.hpp"

#include <array>

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/topology/flow.hpp"
#include "topology/cluster.hpp"

namespace stratagem::topology {

namespace {

/// Servers of `gpus` GPUs on an NVSwitch, each with an adapter of its own.
NodeDesign server(int gpus) {
  NodeDesign design{.name = "server", .gpu = "test", .vertices = {}, .links = {}};
  const VertexId hub = design.add(VertexKind::nv_switch, "hub");
  for (int i = 0; i < gpus; ++i) {
    const VertexId gpu = design.add(VertexKind::gpu, "gpu" + std::to_string(i));
    const VertexId nic = design.add(VertexKind::nic, "nic" + std::to_string(i));
    design.join(gpu, hub, LinkKind::nvlink, 1, 450_GBps, 0_s);
    design.join(gpu, nic, LinkKind::pcie, 1, 1000_GBps, 0_s);
  }
  return design;
}

/// Switches of 8 ports of 50 GB/s.
FabricDesign tree(int rails, double oversubscription) {
  const NetworkSpeed speed{.name = "",
                           .port = 50_GBps,
                           .port_latency = 1_us,
                           .switch_latency = 0.1_us,
                           .radix = 8,
                           .provenance = ""};
  return {.kind = FabricKind::fat_tree,
          .speed = speed,
          .rails = rails,
          .oversubscription = oversubscription};
}

/// Bytes on each direction of each link of the network while every GPU sends one byte to each GPU
/// of every other server.
std::map<Direction, double> everyone_to_everyone(const Cluster& cluster) {
  std::map<Direction, double> load;
  for (int from = 0; from < cluster.gpus(); ++from) {
    for (int to = 0; to < cluster.gpus(); ++to) {
      if (cluster.node_of(from) == cluster.node_of(to)) continue;
      for (const Share& share : cluster.route(from, to)) {
        if (link(cluster, share.direction).kind == LinkKind::network)
          load[share.direction] += share.share;
      }
    }
  }
  return load;
}

/// The bandwidth, one direction, of the links of the fabric from the first half of its leaves up.
BytesPerSecond half_of_leaves(const Fabric& fabric) {
  BytesPerSecond total;
  for (const Fabric::Uplink& uplink : fabric.uplinks()) {
    if (uplink.below < fabric.leaves().groups / 2) total += uplink.bandwidth;
  }
  return total;
}

std::string refusal(const FabricDesign& design, int nodes, int nics) {
  try {
    const Fabric fabric(design, nodes, nics);
  } catch (const InputError& error) {
    return error.expected + ", found " + error.found;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a two-stage fat tree of k-port switches holds k^2/2 ports with 3k/2 switches") {
  // Al-Fares et al., SIGCOMM 2008, section 2: k/2 ports down and k/2 up on each of k leaves, and
  // k/2 spines with a port for each leaf.
  const Fabric fabric(tree(0, 1), 32, 1);
  CHECK(fabric.leaves().groups == 8);
  CHECK(fabric.ports_per_leaf() == 4);
  CHECK(fabric.leaves().cables == 4);
  CHECK(fabric.spines().groups == 1);
  CHECK(fabric.spines().switches == 4);
  CHECK(fabric.cores().groups == 0);
}

TEST_CASE("a three-stage fat tree of k-port switches holds k^3/4 ports with 5k^2/4 switches") {
  // The same: k pods of k/2 leaves and k/2 spines, and (k/2)^2 cores; k = 8: 128 ports, 80
  // switches.
  const Fabric fabric(tree(0, 1), 128, 1);
  CHECK(fabric.leaves().groups == 32);
  CHECK(fabric.spines().groups == 8);
  CHECK(fabric.spines().switches == 4);
  CHECK(fabric.cores().switches == 16);
  CHECK(32 + 8 * 4 + 16 == 5 * 8 * 8 / 4);
  CHECK(refusal(tree(0, 1), 129, 1) ==
        "at most 8 pods of 4 leaves, as many as a core has ports, found 9");
}

TEST_CASE(
    "half of the ports have half of their bandwidth to the others, over the oversubscription") {
  // N ports in whole leaves: N/2 * 50 GB/s / k.
  for (const double k : {1.0, 3.0, 7.0}) {
    const FabricDesign design = tree(0, k);
    const Fabric fabric(design, 4 * Fabric(design, 20, 1).ports_per_leaf(), 1);
    REQUIRE(fabric.leaves().groups == 4);
    const double ports = 4.0 * fabric.ports_per_leaf();
    CHECK(close(half_of_leaves(fabric), ports / 2 * 50_GBps / k, 1e-12));
    CHECK(fabric.ports_per_leaf() + fabric.leaves().cables == 8);
  }
  // 8 ports at 3:1 are 6 down and 2 up; at 7:1 seven and one.
  CHECK(Fabric(tree(0, 3), 24, 1).ports_per_leaf() == 6);
  CHECK(Fabric(tree(0, 7), 28, 1).ports_per_leaf() == 7);
}

TEST_CASE("oversubscription of 2 halves what two leaves have between them") {
  // 12 servers of one adapter, 4 on each leaf: all four of the first send to those of the second.
  FabricDesign design = tree(0, 1);
  design.ports_per_leaf = 4;
  const Cluster full(server(1), 12, design);
  design.oversubscription = 2;
  const Cluster half(server(1), 12, design);
  for (const auto& [cluster, expected] :
       std::vector{std::pair{&full, 50_GBps}, std::pair{&half, 25_GBps}}) {
    std::map<Direction, double> load;
    for (int i = 0; i < 4; ++i) {
      for (const Share& share : cluster->route(i, 4 + i)) load[share.direction] += share.share;
    }
    std::vector<Share> together;
    for (const auto& [direction, amount] : load) together.push_back({direction, amount});
    CHECK(close(bottleneck(*cluster, together), expected, 1e-12));
    // Within a leaf nothing changes.
    CHECK(close(bottleneck(*cluster, cluster->route(0, 3)), 50_GBps, 1e-12));
  }
}

TEST_CASE(
    "everyone to everyone: each uplink carries what leaves its leaf, and the same comes down") {
  // n adapters, d on a leaf, p in a pod: d (n - d) bytes cross each leaf's link, p (n - p) a pod's.
  const Cluster cluster(server(1), 128, tree(0, 1));
  const Fabric& fabric = cluster.fabric();
  const auto load = everyone_to_everyone(cluster);
  int leaves = 0;
  int pods = 0;
  for (const auto& [direction, amount] : load) {
    const Vertex& below = vertex(cluster, link(cluster, direction).a);
    if (below.name.starts_with("leaf")) {
      ++leaves;
      REQUIRE(close(amount, 4.0 * (128 - 4), 1e-9));
    } else if (below.name.starts_with("spine")) {
      ++pods;
      REQUIRE(close(amount, 16.0 * (128 - 16), 1e-9));
    } else {
      REQUIRE(close(amount, 127.0, 1e-9));
    }
  }
  CHECK(leaves == 2 * fabric.leaves().groups);
  CHECK(pods == 2 * fabric.spines().groups);
}

TEST_CASE(
    "rails: adapter i of every server of a unit is on leaf i, and what stays on a rail there") {
  // Radix 8: units of 4 servers; 8 servers of 4 adapters: 2 units of 4 leaves.
  const Cluster cluster(server(4), 8, tree(4, 1));
  const Fabric& fabric = cluster.fabric();
  CHECK(fabric.leaves().groups == 8);
  for (int node = 0; node < 8; ++node) {
    for (int nic = 0; nic < 4; ++nic) CHECK(fabric.leaf_of(node, nic) == node / 4 * 4 + nic);
  }
  const auto switches = [&](int from, int to) {
    return touched(cluster, cluster.route(from, to), VertexKind::fabric).size();
  };
  CHECK(switches(0, 3 * 4) == 1);      // GPU 0 of servers 0 and 3: one leaf
  CHECK(switches(1, 3 * 4 + 1) == 1);  // GPU 1 likewise
  CHECK(switches(0, 3 * 4 + 1) == 3);  // another rail: over the spines
  CHECK(switches(0, 4 * 4) == 3);      // another unit
  // NCCL's PXN hands over to the GPU of the other rail by NVLink; what that one sends stays on the
  // leaf.
  CHECK(touched(cluster, cluster.route_between(1, 1, 3 * 4 + 1, 1), VertexKind::fabric).size() ==
        1);
}

TEST_CASE("without rails a server's adapters are on one leaf as far as it has ports") {
  const Cluster cluster(server(4), 8, tree(0, 1));
  CHECK(cluster.fabric().leaves().groups == 8);
  for (int node = 0; node < 8; ++node) {
    for (int nic = 0; nic < 4; ++nic) CHECK(cluster.fabric().leaf_of(node, nic) == node);
  }
  // Six adapters on leaves of four ports: the fifth of a server stands on the next leaf.
  const Fabric spread(tree(0, 1), 2, 6);
  CHECK(spread.leaves().groups == 3);
  CHECK(spread.leaf_of(0, 3) == 0);
  CHECK(spread.leaf_of(0, 4) == 1);
  CHECK(spread.leaf_of(1, 0) == 1);
  CHECK(spread.leaf_of(1, 5) == 2);
}

TEST_CASE("every pair of GPUs is connected, and the way back is the way forth") {
  for (const int rails : {0, 2, 4}) {
    for (const int nodes : {1, 2, 5, 30}) {
      INFO(rails << " rails, " << nodes << " servers");
      const Cluster cluster(server(4), nodes, tree(rails, 1));
      const auto gpus = all_of(cluster, VertexKind::gpu);
      for (int from = 0; from < cluster.gpus(); from += 3) {
        for (int to = 0; to < cluster.gpus(); ++to) {
          if (from == to) continue;
          const auto forth = cluster.route(from, to);
          REQUIRE(is_unit_flow(cluster, forth, gpus[static_cast<std::size_t>(from)],
                               gpus[static_cast<std::size_t>(to)]));
          std::map<Direction, double> back;
          for (const auto& [direction, share] : cluster.route(to, from))
            back[{direction.link, !direction.forward}] = share;
          REQUIRE(back.size() == forth.size());
          for (const auto& [direction, share] : forth)
            REQUIRE(close(back[direction], share, 1e-12));
          REQUIRE(cluster.latency(from, to) == cluster.latency(to, from));
        }
      }
    }
  }
}

TEST_CASE("the parts of a route between adapters are the whole") {
  const Cluster cluster(server(4), 30, tree(4, 1));
  for (const int to : {1, 3, 4, 29}) {
    for (int nic = 0; nic < 4; ++nic) {
      std::map<Direction, double> parts;
      for (const auto& part : {cluster.route_out(0, 0), cluster.route_across(0, 0, to, nic),
                               cluster.route_in(4 * to + nic, nic)}) {
        for (const auto& [direction, share] : part) parts[direction] += share;
      }
      std::map<Direction, double> whole;
      for (const auto& [direction, share] : cluster.route_between(0, 0, 4 * to + nic, nic))
        whole[direction] += share;
      CHECK(parts == whole);
      // Units of four servers, pods of one unit: rail 0 of the first, else its spines, else cores.
      const std::size_t links = to < 4 ? (nic == 0 ? 0 : 2) : 4;
      CHECK(cluster.route_across(0, 0, to, nic).size() == links);
    }
  }
}

TEST_CASE("latency counts the switches: two ports, and two cables for each stage climbed") {
  const Cluster cluster(server(1), 128, tree(0, 1));
  CHECK(close(cluster.latency(0, 3), 2_us, 1e-12));     // one leaf
  CHECK(close(cluster.latency(0, 4), 2.2_us, 1e-12));   // one pod
  CHECK(close(cluster.latency(0, 16), 2.4_us, 1e-12));  // over a core
}

TEST_CASE("through adapters, too, latency counts the switches between them") {
  // Four adapters of a server on four leaves of its unit of four servers; a core joins the units.
  const Cluster cluster(server(4), 30, tree(4, 1));
  CHECK(close(cluster.latency_between(0, 0, 4, 0), 2_us, 1e-12));    // one leaf
  CHECK(close(cluster.latency_between(0, 0, 5, 1), 2.2_us, 1e-12));  // from rail to rail
  CHECK(close(cluster.latency_between(0, 0, 16, 0), 2.4_us, 1e-12));
  CHECK(close(cluster.latency(0, 4), 2_us, 1e-12));  // GPUs of one rail, as their routes lead
  CHECK(close(cluster.latency(0, 5), 2.2_us, 1e-12));
}

TEST_CASE("a message over several rails is as late as what changes its rail") {
  // Two GPUs, each of which stands at one of three adapters, and at the middle one, as near.
  NodeDesign design = server(0);
  std::array<VertexId, 3> nics{};
  for (int i = 0; i < 3; ++i) nics[i] = design.add(VertexKind::nic, "nic" + std::to_string(i));
  for (int i = 0; i < 2; ++i) {
    const VertexId gpu = design.add(VertexKind::gpu, "gpu" + std::to_string(i));
    design.join(gpu, 0, LinkKind::nvlink, 1, 450_GBps, 0_s);
    for (const int nic : {i, i + 1}) design.join(gpu, nics[nic], LinkKind::pcie, 1, 32_GBps, 0_s);
  }
  const Cluster cluster(design, 2, tree(3, 1));
  CHECK(close(cluster.latency(0, 2), 2_us, 1e-12));    // rails 0 and 1 to rails 0 and 1
  CHECK(close(cluster.latency(0, 3), 2.2_us, 1e-12));  // to rails 1 and 2: half of it climbs
}

TEST_CASE("the first unit of an H100 SuperPOD: 32 servers, 8 leaves with 32 ports down and up") {
  // NVIDIA's reference architecture: 127 to 128 servers in four units, 32 leaves, 16 spines.
  const FabricDesign design{
      .kind = FabricKind::fat_tree, .speed = network_speed("NDR"), .rails = 8};
  const Fabric unit(design, 32, 8);
  CHECK(unit.leaves().groups == 8);
  CHECK(unit.leaves().cables == 32);
  CHECK(unit.spines().switches == 4);
  const Fabric pod(design, 128, 8);
  CHECK(pod.leaves().groups == 32);
  CHECK(pod.spines().switches == 16);
  CHECK(pod.cores().groups == 0);
}

TEST_CASE("GPUs of a node that reach each other only by the network cross its leaves") {
  NodeDesign apart = server(2);
  std::erase_if(apart.links, [](const Link& l) { return l.kind == LinkKind::nvlink; });
  const Cluster cluster(apart, 2, tree(2, 1));
  CHECK(touched(cluster, cluster.route(0, 1), VertexKind::fabric).size() == 3);
  CHECK(close(cluster.latency(0, 1), 2.2_us, 1e-12));
}

TEST_CASE("sixteen thousand GPUs cost no more than their links") {
  const FabricDesign design{
      .kind = FabricKind::fat_tree, .speed = network_speed("NDR"), .rails = 8};
  const Cluster cluster(server(8), 2048, design);
  REQUIRE(cluster.gpus() == 16384);
  // Three stages: 512 leaves of 32 ports; per GPU a link, a PCIe link and a port, and the uplinks.
  CHECK(cluster.fabric().leaves().groups == 512);
  CHECK(cluster.links().size() == 3U * 16384 + 512 + 16);
  for (int gpu = 0; gpu < cluster.gpus(); gpu += 17)
    REQUIRE(cluster.route(gpu, (gpu + 8000) % cluster.gpus()).size() <= 8);
}

TEST_CASE("fabrics that cannot be built are refused") {
  CHECK(refusal(tree(0, 1), 4, 1) == "accepted");
  CHECK_THAT(refusal(tree(0, 0.5), 4, 1),
             StartsWith("an oversubscription of 1 or more, found 0.5"));
  CHECK(refusal(tree(9, 1), 4, 8) == "at most a rail per adapter of a node, found 9");
  CHECK(refusal(tree(1, 1), 4, 8) ==
        "leaves with ports for all adapters of a rail of one node, found 1");
  FabricDesign crowded = tree(0, 1);
  crowded.ports_per_leaf = 5;
  CHECK_THAT(refusal(crowded, 4, 1), StartsWith("at most 4 adapters on a leaf of 8 ports"));
  FabricDesign no_switch = tree(0, 1);
  no_switch.speed.radix = 1;
  CHECK(refusal(no_switch, 4, 1) == "switches of at least 2 ports, found 1");
}

}  // namespace stratagem::topology

// The wiring of each preset, against what is published about it.
#include "topology/presets.hpp"

#include "base/input_error.hpp"
#include "tests/catch.hpp"
#include "tests/topology/flow.hpp"

namespace stratagem::topology {

namespace {

Cluster build(const std::string& name, int nodes) {
  for (const Preset& preset : presets()) {
    if (preset.name == name) return preset.build(nodes);
  }
  FAIL("no preset " << name);
  return presets().front().build(nodes);
}

/// NVLink bandwidth of node 0, one direction, between the vertices `left` and the others.
BytesPerSecond crossing(const Cluster& cluster, const std::set<VertexId>& left) {
  BytesPerSecond total;
  for (const Link& link : cluster.design().links) {
    if (link.kind != LinkKind::nvlink) continue;
    if ((left.count(link.a) > 0) != (left.count(link.b) > 0)) total += link.bandwidth;
  }
  return total;
}

}  // namespace

// DGX-1: 512 GB of DDR4; DGX-2: 1.5 TB; DGX A100 with GPUs of 80 GB, DGX H100 and H200: 2 TB (32
// modules of 64 GB); p3.16xlarge: 488 GiB; p3dn.24xlarge: 768 GiB. Modules are binary. The others
// are no products of one size, or have several hosts.
TEST_CASE("servers have the memory that their sources print, and none where there is no source") {
  for (const auto& [name, memory] :
       {std::pair("dgx-1v", 512), std::pair("dgx-2", 1536), std::pair("dgx-2h", 1536),
        std::pair("dgx-a100", 2048), std::pair("dgx-h100", 2048), std::pair("dgx-h200", 2048),
        std::pair("p3.16xlarge", 488), std::pair("p3dn.24xlarge", 768)}) {
    INFO(name);
    CHECK(build(name, 1).design().host_memory == memory * 1_GiB);
  }
  for (const char* name : {"hgx-b200", "hgx-b300", "gb200-nvl72", "gb200-nvl64", "gb300-nvl72",
                           "gb300-nvl64", "pcie-v100", "pcie-a100", "cpu-host"})
    CHECK_FALSE(build(name, 1).design().host_memory);
}

TEST_CASE("the presets are those of the field, with the profiles of their GPUs") {
  std::vector<std::string> names;
  std::vector<std::string> gpus;
  for (const Preset& preset : presets()) {
    names.push_back(preset.name);
    gpus.push_back(preset.build(1).design().gpu);
    CHECK_FALSE(preset.summary.empty());
  }
  CHECK(names == std::vector<std::string>{"dgx-1v", "dgx-2", "dgx-2h", "dgx-a100", "dgx-h100",
                                          "dgx-h200", "hgx-b200", "hgx-b300", "gb200-nvl72",
                                          "gb200-nvl64", "gb300-nvl72", "gb300-nvl64", "pcie-v100",
                                          "pcie-a100", "p3.16xlarge", "p3dn.24xlarge", "cpu-host"});
  CHECK(gpus == std::vector<std::string>{"v100-sxm2", "v100-sxm3", "v100-sxm3-450w",
                                         "a100-sxm4-80gb", "h100-sxm5", "h200-sxm5", "b200-sxm",
                                         "b300-sxm", "gb200", "gb200", "gb300", "gb300",
                                         "v100-pcie", "a100-pcie-80gb", "v100-sxm2",
                                         "v100-sxm2-32gb", "xeon-platinum-skylake"});
}

TEST_CASE(
    "a server without GPUs has ranks on its processors, which share memory and the UPI links") {
  // Six channels of 21.33 GB/s for each processor; three UPI links of 20.8 GB/s between the two.
  const NodeDesign host = build("cpu-host", 1).design();
  CHECK(host.on_processors());
  CHECK(host.ranks() == 2);
  for (const int ranks : {2, 4, 8, 48}) {
    INFO(ranks << " ranks");
    const Cluster cluster(divided(host, ranks), 1, 12.5_GBps, 1_us);
    CHECK(cluster.gpus() == ranks);
    BytesPerSecond memory;
    for (const Link& link : cluster.design().links) {
      if (link.kind == LinkKind::memory) memory += link.bandwidth;
    }
    CHECK(close(memory, 2 * 6 * 21.33_GBps, 1e-12));  // however many share it
    const auto kinds = [&](int from, int to) {
      std::vector<LinkKind> result;
      for (const Share& share : cluster.route(from, to))
        result.push_back(link(cluster, share.direction).kind);
      return result;
    };
    const auto last = ranks - 1;
    CHECK(kinds(0, last) ==
          std::vector{LinkKind::memory, LinkKind::inter_socket, LinkKind::memory});
    if (ranks > 2) CHECK(kinds(0, 1) == std::vector{LinkKind::memory, LinkKind::memory});
    CHECK(cluster.route_to_host(0).empty());
    CHECK(cluster.nearest_nics(0) == std::vector{0});
    CHECK(cluster.nearest_nics(last) == std::vector{1});
  }
}

TEST_CASE("what is no server of ranks on processors is refused by name") {
  const NodeDesign host = build("cpu-host", 1).design();
  const auto complaint = [](const auto& make) -> std::string {
    try {
      make();
    } catch (const InputError& error) {
      return error.expected + ", found " + error.found;
    }
    return "accepted";
  };
  const auto divide = [&](const NodeDesign& design, int ranks) {
    return complaint([&] { divided(design, ranks); });
  };
  CHECK(divide(host, 2) == "accepted");
  CHECK(divide(host, 3) == "a multiple of the 2 ranks of CPU host, found 3");
  CHECK(divide(host, 1) == "a multiple of the 2 ranks of CPU host, found 1");
  CHECK(divide(build("dgx-2", 1).design(), 32) ==
        "a server whose ranks are processors, found DGX-2");
  const auto build_one = [&](const NodeDesign& design) {
    return complaint([&] { Cluster(design, 1, 10_GBps, 1_us); });
  };
  NodeDesign both = host;
  both.add(VertexKind::gpu, "gpu0");
  CHECK(build_one(both) == "ranks on GPUs or on processors, not both, found CPU host");
  NodeDesign astray = host;
  astray.join(0, 1, LinkKind::memory, 1, 10_GBps, 1_us);
  CHECK(build_one(astray) == "memory links between a rank and its processor, found link 0 - 1");
}

TEST_CASE("every GPU has the NVLinks of its datasheet") {
  // Per GPU and both directions the datasheets say 300 GB/s (V100: 6 links), 600 (A100: 12), 900
  // (H100 and H200: 18), 1.8 TB/s (B200, GB200: 18).
  struct Expected {
    std::string name;
    int cables;
    BytesPerSecond both_ways;
  };
  for (const auto& [name, cables, both_ways] :
       std::vector<Expected>{{"dgx-1v", 6, 300_GBps},
                             {"dgx-2", 6, 300_GBps},
                             {"dgx-2h", 6, 300_GBps},
                             {"dgx-a100", 12, 600_GBps},
                             {"dgx-h100", 18, 900_GBps},
                             {"dgx-h200", 18, 900_GBps},
                             {"hgx-b200", 18, 1800_GBps},
                             {"gb200-nvl72", 18, 1800_GBps},
                             {"gb200-nvl64", 18, 1800_GBps},
                             {"hgx-b300", 18, 1800_GBps},
                             {"gb300-nvl72", 18, 1800_GBps},
                             {"gb300-nvl64", 18, 1800_GBps},
                             {"p3.16xlarge", 6, 300_GBps},
                             {"p3dn.24xlarge", 6, 300_GBps}}) {
    INFO(name);
    const Cluster cluster = build(name, 1);
    const auto at = nvlinks(cluster.design());
    for (const VertexId gpu : all_of(cluster, VertexKind::gpu)) {
      CHECK(at.at(gpu) == cables);
      CHECK(2 * crossing(cluster, {gpu}) == both_ways);
    }
  }
}

TEST_CASE("servers have the NVSwitches, GPUs and adapters of their datasheets") {
  struct Expected {
    std::string name;
    std::size_t gpus, switches, nics;
    BytesPerSecond network;
  };
  // Network of the server: 4 x 100 Gb/s = 50 GB/s; 8 x 100, 200, 400, 800 Gb/s; a rack of 72 x 400
  // or 800 Gb/s; one interface of 25 and of 100 Gb/s.
  for (const auto& [name, gpus, switches, nics, network] :
       std::vector<Expected>{{"dgx-1v", 8, 0, 4, 50_GBps},
                             {"dgx-2", 16, 12, 8, 100_GBps},
                             {"dgx-2h", 16, 12, 8, 100_GBps},
                             {"dgx-a100", 8, 6, 8, 200_GBps},
                             {"dgx-h100", 8, 4, 8, 400_GBps},
                             {"dgx-h200", 8, 4, 8, 400_GBps},
                             {"hgx-b200", 8, 2, 8, 400_GBps},
                             {"gb200-nvl72", 72, 18, 72, 3600_GBps},
                             {"gb200-nvl64", 64, 18, 64, 3200_GBps},
                             {"hgx-b300", 8, 2, 8, 800_GBps},
                             {"gb300-nvl72", 72, 18, 72, 7200_GBps},
                             {"gb300-nvl64", 64, 18, 64, 6400_GBps},
                             {"pcie-v100", 8, 0, 2, 25_GBps},
                             {"pcie-a100", 8, 0, 2, 50_GBps},
                             {"p3.16xlarge", 8, 0, 1, 3.125_GBps},
                             {"p3dn.24xlarge", 8, 0, 1, 12.5_GBps}}) {
    INFO(name);
    const Cluster cluster = build(name, 1);
    CHECK(all_of(cluster, VertexKind::gpu).size() == gpus);
    CHECK(all_of(cluster, VertexKind::nv_switch).size() == switches);
    CHECK(all_of(cluster, VertexKind::nic).size() == nics);
    CHECK(static_cast<double>(nics) * cluster.fabric().design().speed.port == network);
  }
}

TEST_CASE("a B300 reaches its own adapter at the rate of PCIe 6.0, past no processor") {
  for (const char* name : {"hgx-b300", "gb300-nvl72"}) {
    INFO(name);
    const Cluster cluster = build(name, 2);
    for (const int gpu : {0, 7}) CHECK(cluster.nearest_nics(gpu) == std::vector{gpu});
    const auto far = cluster.route(0, cluster.design().ranks());
    CHECK(close(bottleneck(cluster, far), 100_GBps, 1e-12));  // of 121 over PCIe 6.0
    CHECK_FALSE(kinds(cluster, far).contains(LinkKind::inter_socket));
    CHECK_FALSE(kinds(cluster, far).contains(LinkKind::c2c));
  }
}

TEST_CASE("GB200 NVL72: 130 TB/s of NVLink, a port of 72 on every switch chip for each GPU") {
  // 72 GPUs x 1.8 TB/s = 129.6 TB/s, both directions counted; a chip has 72 ports.
  const Cluster rack = build("gb200-nvl72", 1);
  BytesPerSecond total;
  for (const Link& link : rack.design().links) {
    if (link.kind == LinkKind::nvlink) total += link.bandwidth;
  }
  CHECK(2 * total == 129.6_TBps);
  for (const VertexId id : all_of(rack, VertexKind::nv_switch))
    CHECK(nvlinks(rack.design()).at(id) == 72);
  // Any two of the rack see 18 x 50 GB/s, and none goes by way of a Grace.
  CHECK(close(bottleneck(rack, rack.route(0, 1)), 900_GBps, 1e-12));
  CHECK(close(bottleneck(rack, rack.route(3, 71)), 900_GBps, 1e-12));
  CHECK(kinds(rack, rack.route(0, 1)) == std::set{LinkKind::nvlink});
  // A copy to the host takes the 450 GB/s to the Grace beside it.
  CHECK(kinds(rack, rack.route_to_host(5)) == std::set{LinkKind::c2c});
  CHECK(close(bottleneck(rack, rack.route_to_host(5)), 450_GBps, 1e-12));
}

TEST_CASE("a message alone is as fast as the NVLinks between two GPUs, two, one or none") {
  // DGX-1V: GPU 0 has two links of 25 GB/s to GPUs 3 and 4, one to 1 and 2, none to 5, 6 and 7.
  const Cluster server = build("dgx-1v", 1);
  for (const int neighbour : {3, 4}) CHECK(close(server.bandwidth(0, neighbour), 50_GBps, 1e-12));
  for (const int neighbour : {1, 2}) CHECK(close(server.bandwidth(0, neighbour), 25_GBps, 1e-12));
  for (const int far : {5, 6, 7}) CHECK(server.bandwidth(0, far) < 20_GBps);
}

TEST_CASE("PCIe servers: GPUs of a socket meet on its switch, those of two between the sockets") {
  const Cluster server = build("pcie-a100", 1);
  CHECK(touched(server, server.route(0, 3), VertexKind::cpu).empty());
  CHECK(close(bottleneck(server, server.route(0, 3)), 31.5_GBps, 1e-12));
  CHECK(touched(server, server.route(0, 4), VertexKind::cpu).size() == 2);
  CHECK(close(bottleneck(server, server.route(0, 4)), 31.5_GBps, 1e-12));
  CHECK(kinds(server, server.route(0, 4)) == std::set{LinkKind::pcie, LinkKind::inter_socket});
}

TEST_CASE("DGX-1V: exactly the 16 pairs of the hybrid cube mesh have NVLinks") {
  // Doubles 03 04 12 15 23 47 56 67, singles 01 02 13 26 37 45 46 57 (HARDWARE: nccl#671 and
  // memory): 16 of the 28 pairs; the other 12 are those listed below.
  const std::map<std::pair<VertexId, VertexId>, int> mesh{
      {{0, 1}, 1}, {{0, 2}, 1}, {{0, 3}, 2}, {{0, 4}, 2}, {{1, 2}, 2}, {{1, 3}, 1},
      {{1, 5}, 2}, {{2, 3}, 2}, {{2, 6}, 1}, {{3, 7}, 1}, {{4, 5}, 1}, {{4, 6}, 1},
      {{4, 7}, 2}, {{5, 6}, 2}, {{5, 7}, 1}, {{6, 7}, 2}};
  const Cluster cluster = build("dgx-1v", 1);
  std::map<std::pair<VertexId, VertexId>, int> found;
  for (const Link& link : cluster.design().links) {
    if (link.kind == LinkKind::nvlink) found[{link.a, link.b}] += link.count;
  }
  CHECK(found == mesh);

  std::set<std::pair<int, int>> without;
  for (int a = 0; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) {
      const auto shares = cluster.route(a, b);
      if (kinds(cluster, shares) == std::set{LinkKind::nvlink}) {
        CHECK(bottleneck(cluster, shares) == mesh.at({a, b}) * 25_GBps);
        continue;
      }
      without.insert({a, b});
      CHECK(kinds(cluster, shares).count(LinkKind::nvlink) == 0);
      CHECK(kinds(cluster, shares).count(LinkKind::pcie) == 1);
      CHECK(touched(cluster, shares, VertexKind::gpu) == std::set<VertexId>{a, b});
      CHECK(close(bottleneck(cluster, shares), 15.75_GBps, 1e-12));
    }
  }
  CHECK(without == std::set<std::pair<int, int>>{{0, 5},
                                                 {0, 6},
                                                 {0, 7},
                                                 {1, 4},
                                                 {1, 6},
                                                 {1, 7},
                                                 {2, 4},
                                                 {2, 5},
                                                 {2, 7},
                                                 {3, 4},
                                                 {3, 5},
                                                 {3, 6}});
}

TEST_CASE("DGX-1V: six NVLinks join the two quads") {
  // 0-4 x2, 1-5 x2, 2-6, 3-7: 6 x 25 GB/s.
  CHECK(crossing(build("dgx-1v", 1), {0, 1, 2, 3}) == 150_GBps);
}

TEST_CASE("DGX-1V: a path over PCIe is as long as the distance between the sockets") {
  // gpu0 - pcie0 - cpu0 - cpu1 - pcie2 - gpu5: four PCIe links of 150 ns and a socket link of 100
  // ns.
  const Cluster cluster = build("dgx-1v", 1);
  CHECK(cluster.route(0, 5).size() == 5);
  CHECK(close(cluster.latency(0, 5), 700_ns, 1e-12));
}

TEST_CASE("copies to the host take the PCIe links to the nearest processor") {
  // Two from a GPU of a DGX-1V or DGX A100, three of a DGX-2, whose switches stand in two stages.
  CHECK(close(build("dgx-1v", 1).latency_to_host(5), 300_ns, 1e-12));
  CHECK(close(build("dgx-a100", 2).latency_to_host(12), 300_ns, 1e-12));
  CHECK(close(build("dgx-2", 1).latency_to_host(0), 450_ns, 1e-12));
}

TEST_CASE("DGX-2: any two GPUs see all six links of each other") {
  // 1/6 of the message on each 25 GB/s link, so 150 GB/s. Within a board: 6 links to switches, 6
  // from them. Between boards: as well 6 trunks of 8 x 25 GB/s, which carry 1/6 each.
  for (const std::string name : {"dgx-2", "dgx-2h"}) {
    const Cluster cluster = build(name, 1);
    for (int a = 0; a < 16; ++a) {
      for (int b = 0; b < 16; ++b) {
        if (a == b) continue;
        INFO(name << ": " << a << " to " << b);
        const auto shares = cluster.route(a, b);
        const bool same_board = a / 8 == b / 8;
        CHECK(close(bottleneck(cluster, shares), 150_GBps, 1e-12));
        CHECK(touched(cluster, shares, VertexKind::nv_switch).size() == (same_board ? 6U : 12U));
        REQUIRE(shares.size() == (same_board ? 12U : 18U));
        int trunks = 0;
        for (const Share& share : shares) {
          CHECK(close(share.share, 1.0 / 6, 1e-12));
          if (link(cluster, share.direction).count == 8) ++trunks;
        }
        CHECK(trunks == (same_board ? 0 : 6));
        // 25 ns for each of 2 or 3 links.
        CHECK(close(cluster.latency(a, b), same_board ? 50_ns : 75_ns, 1e-12));
      }
    }
  }
}

TEST_CASE("DGX-2: 48 NVLinks join the boards") {
  // 6 trunks x 8 links x 25 GB/s = 1.2 TB/s per direction: NVIDIA's 2.4 TB/s, which counts both.
  std::set<VertexId> board;
  const Cluster cluster = build("dgx-2", 1);
  const auto gpus = all_of(cluster, VertexKind::gpu);
  const auto switches = all_of(cluster, VertexKind::nv_switch);
  board.insert(gpus.begin(), gpus.begin() + 8);
  board.insert(switches.begin(), switches.begin() + 6);
  CHECK(crossing(cluster, board) == 1.2_TBps);
  // An NVSwitch has 18 ports: 8 GPUs and 8 of the trunk leave two free.
  for (const VertexId id : switches) CHECK(nvlinks(cluster.design()).at(id) == 16);
}

TEST_CASE("each GPU's nearest adapters are those under its PCIe switch") {
  struct Expected {
    std::string name;
    int gpus_per_switch;
    int nics_per_switch;
  };
  for (const auto& [name, gpus, nics] : std::vector<Expected>{{"dgx-1v", 2, 1},
                                                              {"dgx-2", 2, 1},
                                                              {"dgx-2h", 2, 1},
                                                              {"dgx-a100", 2, 2},
                                                              {"dgx-h100", 1, 1},
                                                              {"dgx-h200", 1, 1},
                                                              {"hgx-b200", 2, 2},
                                                              {"gb200-nvl72", 2, 2},
                                                              {"gb200-nvl64", 2, 2},
                                                              {"pcie-v100", 4, 1},
                                                              {"p3.16xlarge", 8, 1}}) {
    const Cluster cluster = build(name, 2);
    for (int gpu = 0; gpu < cluster.gpus(); ++gpu) {
      INFO(name << ": " << gpu);
      const int first = gpu % cluster.gpus_per_node() / gpus * nics;
      std::vector<int> expected{first};
      if (nics == 2) expected.push_back(first + 1);
      CHECK(cluster.nearest_nics(gpu) == expected);
    }
  }
}

TEST_CASE("across nodes a GPU has what its adapters and its PCIe link leave it") {
  // One EDR port: 12.5 GB/s. DGX A100: two HDR ports would be 50 GB/s, but the GPU's own PCIe 4.0
  // link has 31.5. DGX H100: one NDR port of 50 GB/s under a PCIe link of 63.
  const std::map<std::string, BytesPerSecond> expected{{"dgx-1v", 12.5_GBps},
                                                       {"dgx-2", 12.5_GBps},
                                                       {"dgx-2h", 12.5_GBps},
                                                       {"dgx-a100", 31.5_GBps},
                                                       {"dgx-h100", 50_GBps}};
  for (const auto& [name, bandwidth] : expected) {
    INFO(name);
    const Cluster cluster = build(name, 2);
    CHECK(close(bottleneck(cluster, cluster.route(0, cluster.gpus() - 1)), bandwidth, 1e-12));
  }
  // PCIe to the adapter is 2 x 150 ns and the port 500 ns, at either end.
  CHECK(close(build("dgx-2h", 2).latency(0, 16), 1.6_us, 1e-12));
}

TEST_CASE("DGX-2: adapters are as far away as nvidia-smi says") {
  // PIX: the leaf. PXB: leaf, root, leaf. NODE: leaf, root, CPU, root, leaf. SYS: with both CPUs
  // (nccl-tests#78). With n switches and CPUs between there are n + 1 links, and the port.
  const Cluster cluster = build("dgx-2", 1);
  CHECK(cluster.route_out(0, 0).size() == 1 + 1 + 1);
  CHECK(cluster.route_out(0, 1).size() == 3 + 1 + 1);
  CHECK(cluster.route_out(0, 2).size() == 5 + 1 + 1);
  CHECK(cluster.route_out(0, 3).size() == 5 + 1 + 1);
  CHECK(cluster.route_out(0, 4).size() == 6 + 1 + 1);
  CHECK(cluster.route_in(0, 4).size() == 6 + 1 + 1);
}

TEST_CASE("DGX A100: twelve links over six switches") {
  const Cluster cluster = build("dgx-a100", 1);
  const auto shares = cluster.route(2, 7);
  REQUIRE(shares.size() == 12);
  CHECK(close(bottleneck(cluster, shares), 300_GBps, 1e-12));
}

TEST_CASE("DGX H100: eighteen links, 5/5/4/4 over four switches") {
  const Cluster cluster = build("dgx-h100", 1);
  const auto shares = cluster.route(2, 7);
  REQUIRE(shares.size() == 8);
  std::vector<int> cables;
  for (std::size_t i = 0; i < 4; ++i) {
    cables.push_back(link(cluster, shares[i].direction).count);
    CHECK(close(shares[i].share, cables[i] / 18.0, 1e-12));
  }
  CHECK(cables == std::vector{5, 5, 4, 4});
  CHECK(close(bottleneck(cluster, shares), 450_GBps, 1e-12));
}

}  // namespace stratagem::topology

// Ring collectives: closed forms on known servers.
#include "cost/ring.hpp"

#include <map>
#include <numeric>

#include "base/input_error.hpp"
#include "cost/collectives.hpp"
#include "tests/catch.hpp"
#include "tests/cost/collective_time.hpp"
#include "tests/cost/round_constants.hpp"
#include "tests/cost/servers.hpp"

using namespace stratagem;
using namespace stratagem::cost;

namespace {

Seconds time(CollectiveKind kind, const topology::Cluster& cluster, const std::vector<int>& ranks,
             Bytes payload) {
  return collective_time(ring_route(kind, cluster, ranks, round_constants()), payload, cluster,
                         round_constants());
}

}  // namespace

TEST_CASE(
    "an all-reduce within a DGX-2 board moves 2(n-1)/n of the payload over six NVLinks per GPU") {
  const topology::Cluster cluster = preset("dgx-2h", 1);
  for (const int n : {2, 4, 8}) {
    // 10 us + 2(n-1) us + 2(n-1)/n * 1.2 GB / (6 x 25 GB/s)
    const Seconds expected = 10_us + 2 * (n - 1) * 1_us + 2.0 * (n - 1) / n * (1.2_GB / 150_GBps);
    CHECK(close(time(CollectiveKind::all_reduce, cluster, first(n), 1.2_GB), expected, 1e-9));
  }
}

TEST_CASE(
    "ranks on processors are as fast as their shares of memory, or the links between sockets") {
  // Four of a processor's ranks have 128 / 4 GB/s each and are usable to a quarter: a ring over all
  // eight puts 2 * 7/8 of the payload on each. Two alone, on two sockets, meet at 62.4 GB/s first.
  CollectiveConstants quarter = round_constants();
  quarter.memory_efficiency = Constant<double>{.value = 0.25, .source = "test"};
  const topology::NodeDesign host = preset("cpu-host", 1).design();
  const topology::Cluster two(host, 1, 12.5_GBps, 1_us);
  const topology::Cluster eight(topology::divided(host, 8), 1, 12.5_GBps, 1_us);
  const auto reduce = [&](const topology::Cluster& cluster, int n, const CollectiveConstants& c) {
    return collective_time(ring_route(CollectiveKind::all_reduce, cluster, first(n), c), 1_GB,
                           cluster, c);
  };
  const BytesPerSecond channel = 6 * 21.33_GBps;
  CHECK(close(reduce(eight, 8, quarter), 24_us + 1.75 * (1_GB / (0.25 * (channel / 4))), 1e-9));
  CHECK(close(reduce(eight, 4, quarter), 16_us + 1.5 * (1_GB / (0.25 * (channel / 4))), 1e-9));
  CHECK(close(reduce(two, 2, quarter), 12_us + 1_GB / (0.25 * channel), 1e-9));
  quarter.memory_efficiency->value = 1;
  CHECK(close(reduce(two, 2, quarter), 12_us + 1_GB / 62.4_GBps, 1e-9));
}

TEST_CASE("ranks on processors have no NCCL, no host beside them, and want to know of memory") {
  const auto complaint = [](const auto& ask) -> std::string {
    try {
      ask();
    } catch (const InputError& error) {
      return error.path + ": " + error.expected + ", found " + error.found;
    }
    return "accepted";
  };
  const topology::Cluster cluster = preset("cpu-host", 1);
  CollectiveConstants c = round_constants();
  CHECK(complaint([&] { Collectives(cluster, c); }) ==
        "/profile: a profile with memory_efficiency under collective, found none, for CPU host, "
        "whose ranks are processors");
  c.memory_efficiency = Constant<double>{.value = 0.25, .source = "test"};
  CHECK(complaint([&] { Collectives(cluster, c); }) == "accepted");
  CHECK(
      complaint([&] { Collectives(cluster, c, "2.18.6"); }) ==
      "/cluster: GPUs, for collectives of NCCL 2.18.6, found CPU host, whose ranks are processors");
  for (const CollectiveKind kind : {CollectiveKind::to_host, CollectiveKind::from_host}) {
    CHECK(complaint([&] { ring_route(kind, cluster, {0}, c); }) ==
          "/cluster: GPUs that reach a processor, for copies to the host, found CPU host, whose "
          "ranks are processors");
  }
}

TEST_CASE("all-gather and reduce-scatter take half the steps and half the bytes of an all-reduce") {
  const topology::Cluster cluster = preset("dgx-a100", 1);
  const Seconds all = time(CollectiveKind::all_reduce, cluster, first(8), 1_GB) - 10_us;
  for (const CollectiveKind half : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    CHECK(close(time(half, cluster, first(8), 1_GB) - 10_us, all / 2, 1e-9));
  }
}

TEST_CASE(
    "a broadcast and a reduction pass every rank: n-1 steps, and all of it along every edge") {
  const topology::Cluster cluster = preset("dgx-2h", 4);
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    // 1.2 GB over six NVLinks, in a pipeline.
    for (const int n : {2, 4, 8})
      CHECK(close(time(kind, cluster, first(n), 1.2_GB), 10_us + (n - 1) * 1_us + 1.2_GB / 150_GBps,
                  1e-9));
    // One GPU on each of four servers: three steps between them, through one EDR adapter each.
    CHECK(close(time(kind, cluster, {0, 16, 32, 48}, 1_GB), 10_us + 3 * 5_us + 1_GB / 12.5_GBps,
                1e-9));
    // Two, with an adapter each: 8 - 4 of the seven steps within servers.
    CHECK(close(time(kind, cluster, {0, 8, 16, 24, 32, 40, 48, 56}, 1_GB),
                10_us + 3 * 5_us + 4 * 1_us + 1_GB / 25_GBps, 1e-9));
  }
}

TEST_CASE("a DGX-1V has as many rings as its cables allow: 1, 2, 4 and 6 for 2, 3, 4 and 8 GPUs") {
  // NCCL 2.28.9's graph search finds as many. Five GPUs have no ring of NVLinks: PCIe carries it.
  const topology::Cluster cluster = preset("dgx-1v", 1);
  for (const auto& [n, rings] :
       std::map<int, int>{{2, 1}, {3, 2}, {4, 4}, {6, 2}, {7, 4}, {8, 6}}) {
    const Seconds expected =
        10_us + 2 * (n - 1) * 1_us + 2.0 * (n - 1) / n * (1_GB / (rings * 25_GBps));
    CHECK(close(time(CollectiveKind::all_reduce, cluster, first(n), 1_GB), expected, 1e-9));
  }
  CHECK(time(CollectiveKind::all_reduce, cluster, first(5), 1_GB) > 1.6 * (1_GB / 15.75_GBps));
}

TEST_CASE("an all-reduce of one rank takes no time") {
  const topology::Cluster cluster = preset("dgx-2h", 1);
  CHECK(time(CollectiveKind::all_reduce, cluster, {5}, 1_GB) == 0_s);
}

TEST_CASE("across nodes a ring of one GPU per node is as fast as its adapter") {
  // One EDR adapter, 12.5 GB/s; 2(N-1) steps, all across the network; both ways of every port carry
  // 2(N-1)/N.
  const topology::Cluster cluster = preset("dgx-2h", 4);
  const Seconds expected = 10_us + 6 * 5_us + 2.0 * 3 / 4 * (1_GB / 12.5_GBps);
  CHECK(close(time(CollectiveKind::all_reduce, cluster, {0, 16, 32, 48}, 1_GB), expected, 1e-9));
}

TEST_CASE(
    "a ring uses the adapters of all its GPUs: two GPUs of a node with an adapter each double the "
    "rate") {
  // GPUs 0 and 8 stand on different boards and PCIe switches; n = 8 ranks on N = 4 nodes.
  const topology::Cluster cluster = preset("dgx-2h", 4);
  const std::vector<int> ranks = {0, 8, 16, 24, 32, 40, 48, 56};
  const Seconds expected = 10_us + 6 * 5_us + (14 - 6) * 1_us + 2.0 * 7 / 8 * (1_GB / 25_GBps);
  CHECK(close(time(CollectiveKind::all_reduce, cluster, ranks, 1_GB), expected, 1e-9));
}

TEST_CASE("what a ring puts on every adapter is what crosses it: in as much as out") {
  const topology::Cluster cluster = preset("dgx-2h", 4);
  const Route route = ring_route(CollectiveKind::all_reduce, cluster, first(64), round_constants());
  double out = 0;
  double in = 0;
  for (const LinkLoad& load : route.loads) {
    const topology::Link& link = cluster.links()[load.direction.link];
    if (link.kind != topology::LinkKind::network) continue;
    const bool leaves = cluster.vertices()[load.direction.forward ? link.a : link.b].kind ==
                        topology::VertexKind::nic;
    (leaves ? out : in) += load.load;
  }
  // One edge of the ring leaves each of the four nodes: 4 * 2 * 63/64 bytes per byte of payload.
  CHECK(close(out, 4 * 2.0 * 63 / 64, 1e-9));
  CHECK(close(in, out, 1e-12));
}

TEST_CASE("a send takes its payload over the slowest link of its route") {
  const topology::Cluster cluster = preset("dgx-2h", 2);
  CHECK(close(time(CollectiveKind::send, cluster, {0, 1}, 1_GB), 11_us + 1_GB / 150_GBps, 1e-9));
  CHECK(close(time(CollectiveKind::send, cluster, {0, 16}, 1_GB), 15_us + 1_GB / 12.5_GBps, 1e-9));
}

TEST_CASE("usable shares apply to their kind of link") {
  CollectiveConstants c = round_constants();
  c.nvlink_efficiency.value = 0.5;
  const topology::Cluster cluster = preset("dgx-2h", 1);
  const Route route = ring_route(CollectiveKind::all_reduce, cluster, first(2), c);
  CHECK(close(collective_time(route, 1_GB, cluster, c), 12_us + 1_GB / 75_GBps, 1e-9));
}

TEST_CASE(
    "rings cross leaves: the uplinks hold them up once they are thinner than a server's ports") {
  // 16 DGX H100, eight on a leaf; a ring's edge is 8 x 50 GB/s wide. Without rails it leaves a leaf
  // of 64 adapters by 64 x 50 / k GB/s; with rails an eighth of it leaves each leaf by 8 x 50 / k.
  // Either way k may be 8; with 16 it takes twice as long.
  using namespace topology;
  const Cluster switched = preset("dgx-h100", 16);
  const auto with = [&](int rails, double k) {
    FabricDesign design{.kind = FabricKind::fat_tree, .speed = network_speed("NDR")};
    design.speed.radix = 144;
    design.rails = rails;
    design.oversubscription = k;
    design.ports_per_leaf = rails > 0 ? 8 : 64;
    return Cluster(switched.design(), 16, design);
  };
  const auto slowest = [&](const Cluster& cluster) {
    std::vector<int> ranks(128);
    std::iota(ranks.begin(), ranks.end(), 0);
    const Route route = ring_route(CollectiveKind::all_reduce, cluster, ranks, round_constants());
    std::map<VertexId, double> net;  // of the switches: what comes goes on
    for (const LinkLoad& load : route.loads) {
      const Link& link = cluster.links()[load.direction.link];
      net[link.a] += load.direction.forward ? -load.load : load.load;
      net[link.b] += load.direction.forward ? load.load : -load.load;
    }
    for (const auto& [vertex, left] : net) {
      if (cluster.vertices()[vertex].kind == VertexKind::fabric) CHECK(std::abs(left) < 1e-9);
    }
    return collective_time(route, 1_GiB, cluster, round_constants()) - route.latency;
  };
  const Seconds alone = slowest(switched);
  for (const int rails : {0, 8}) {
    CHECK(close(slowest(with(rails, 1)), alone, 1e-9));
    CHECK(close(slowest(with(rails, 8)), alone, 1e-9));
    CHECK(close(slowest(with(rails, 16)), 2 * alone, 1e-9));
  }
}

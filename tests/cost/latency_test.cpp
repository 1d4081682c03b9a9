// What links' latency adds to collectives: closed forms on servers whose links differ.
#include <algorithm>
#include <array>

#include "cost/collectives.hpp"
#include "cost/nccl/route.hpp"
#include "tests/catch.hpp"
#include "tests/cost/nccl/nccl_machines.hpp"
#include "tests/cost/round_constants.hpp"

using namespace stratagem;
using namespace stratagem::cost;

namespace {

using topology::LinkKind;
using topology::NodeDesign;
using topology::VertexKind;

constexpr std::array rings{CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                           CollectiveKind::broadcast, CollectiveKind::reduce};

/// Steps, base and what they contain of links' latency: nothing.
CollectiveConstants nothing() {
  CollectiveConstants c = round_constants();
  c.base.value = c.node_step.value = c.network_step.value = Seconds{};
  c.node_link_latency = c.network_link_latency = std::nullopt;
  return c;
}

/// Four GPUs on a switch, whose cables take 1, 2, 3 and 4 us: neighbours in a ring are 3, 5, 7 and
/// 5 us apart.
topology::Cluster uneven() {
  NodeDesign design{.name = "uneven", .gpu = "test", .vertices = {}, .links = {}};
  const auto hub = design.add(VertexKind::nv_switch, "hub");
  for (int i = 0; i < 4; ++i)
    design.join(design.add(VertexKind::gpu, "gpu" + std::to_string(i)), hub, LinkKind::nvlink, 1,
                25_GBps, (i + 1) * 1_us);
  return {design, 1, 12.5_GBps, 1_us};
}

/// Servers of two GPUs, `near` apart, and 1 us from an adapter whose port takes 3 us.
NodeDesign pair(Seconds near) {
  NodeDesign design{.name = "pair", .gpu = "test", .vertices = {}, .links = {}};
  const auto a = design.add(VertexKind::gpu, "gpu0");
  const auto b = design.add(VertexKind::gpu, "gpu1");
  const auto nic = design.add(VertexKind::nic, "nic0");
  design.join(a, b, LinkKind::nvlink, 1, 25_GBps, near);
  for (const auto gpu : {a, b}) design.join(gpu, nic, LinkKind::pcie, 1, 16_GBps, 1_us);
  return design;
}

Seconds empty(CollectiveKind kind, const topology::Cluster& cluster, const std::vector<int>& ranks,
              const CollectiveConstants& constants) {
  return Collectives(cluster, constants).route(kind, ranks, 0_B).latency;
}

/// Every link of the design, the port and the way between switches longer by so much.
topology::Cluster farther(const topology::Cluster& cluster, Seconds more) {
  NodeDesign design = cluster.design();
  for (topology::Link& link : design.links) link.latency += more;
  topology::FabricDesign fabric = cluster.fabric().design();
  fabric.speed.port_latency += more;
  fabric.speed.switch_latency += more;
  return {design, cluster.nodes(), fabric};
}

CollectiveConstants shipped(const std::string& profile) {
  return read_profile("scenarios/profiles/" + profile + ".json").collective;
}

}  // namespace

TEST_CASE(
    "with steps of nothing an empty send takes its route's latency, a ring its slowest hop's") {
  const topology::Cluster cluster = uneven();
  CHECK(close(empty(CollectiveKind::send, cluster, {0, 1}, nothing()), 3_us, 1e-12));
  CHECK(close(empty(CollectiveKind::send, cluster, {0, 3}, nothing()), 5_us, 1e-12));
  CHECK(close(empty(CollectiveKind::send, cluster, {3, 2}, nothing()), 7_us, 1e-12));
  // Each of 2(n-1) steps ends when its slowest hop has, 7 us of four; 3 and 5 us of the first two,
  // three.
  CHECK(close(empty(CollectiveKind::all_reduce, cluster, {0, 1, 2, 3}, nothing()), 42_us, 1e-12));
  CHECK(close(empty(CollectiveKind::all_reduce, cluster, {0, 1}, nothing()), 6_us, 1e-12));
  CHECK(close(empty(CollectiveKind::all_reduce, cluster, {0, 1, 2}, nothing()), 20_us, 1e-12));
  // One way round, n-1: what is broadcast passes all others on its way to the last.
  for (const CollectiveKind kind : rings)
    CHECK(close(empty(kind, cluster, {0, 1, 2, 3}, nothing()), 21_us, 1e-12));
  // All pairs at once, 2 and 3 are the farthest.
  CHECK(close(empty(CollectiveKind::all_to_all, cluster, {0, 1, 2, 3}, nothing()), 7_us, 1e-12));
}

TEST_CASE("a step takes longer by what a hop has beyond the latency that its constant contains") {
  const topology::Cluster cluster = uneven();
  CollectiveConstants c = round_constants();  // 10 us, and 1 us a step
  const auto reduced = [&] { return empty(CollectiveKind::all_reduce, cluster, {0, 1, 2, 3}, c); };
  c.node_link_latency = Constant<Seconds>{.value = 3_us};
  CHECK(close(reduced(), 10_us + 6 * (1_us + 7_us - 3_us), 1e-12));
  CHECK(close(empty(CollectiveKind::send, cluster, {0, 1}, c), 11_us, 1e-12));
  c.node_link_latency->value = 7_us;
  CHECK(close(reduced(), 16_us, 1e-12));
  c.node_link_latency->value = 50_us;  // never less than the constant
  CHECK(close(reduced(), 16_us, 1e-12));
  c.node_link_latency = std::nullopt;  // states nothing, contains nothing
  CHECK(close(reduced(), 10_us + 6 * (1_us + 7_us), 1e-12));
}

TEST_CASE("between servers a hop is all its links: adapters, ports and the fabric's switches") {
  // Three servers of two GPUs, n = 6 on N = 3: 2(n-N) steps of 2 us within, 2(N-1) of 1 + 3 + 3 + 1
  // us.
  const topology::Cluster three(pair(2_us), 3, 12.5_GBps, 3_us);
  const std::vector<int> all{0, 1, 2, 3, 4, 5};
  CHECK(close(empty(CollectiveKind::send, three, {1, 2}, nothing()), 8_us, 1e-12));
  CHECK(
      close(empty(CollectiveKind::all_reduce, three, all, nothing()), 6 * 2_us + 4 * 8_us, 1e-12));
  for (const CollectiveKind kind : rings)
    CHECK(close(empty(kind, three, all, nothing()), 3 * 2_us + 2 * 8_us, 1e-12));
  CHECK(close(empty(CollectiveKind::all_to_all, three, all, nothing()), 8_us, 1e-12));
  CollectiveConstants c = nothing();
  c.network_link_latency = Constant<Seconds>{.value = 5_us};
  CHECK(close(empty(CollectiveKind::all_reduce, three, all, c), 6 * 2_us + 4 * 3_us, 1e-12));
  // Where GPUs of a server are 20 us apart, they are the last that an all-to-all waits for.
  const topology::Cluster slow(pair(20_us), 3, 12.5_GBps, 3_us);
  CHECK(close(empty(CollectiveKind::all_to_all, slow, all, nothing()), 20_us, 1e-12));
  CHECK(close(empty(CollectiveKind::all_to_all, slow, {0, 2, 4}, nothing()), 8_us, 1e-12));
  // Two servers on a leaf, and 5 us from switch to switch: up and down.
  topology::FabricDesign tree{.kind = topology::FabricKind::fat_tree,
                              .speed = topology::network_speed("EDR")};
  tree.speed.port_latency = 3_us;
  tree.speed.switch_latency = 5_us;
  tree.ports_per_leaf = 2;
  const topology::Cluster four(pair(2_us), 4, tree);
  CHECK(close(empty(CollectiveKind::send, four, {0, 2}, nothing()), 8_us, 1e-12));
  CHECK(close(empty(CollectiveKind::send, four, {0, 4}, nothing()), 18_us, 1e-12));
  CHECK(close(empty(CollectiveKind::all_reduce, four, {0, 2}, nothing()), 2 * 8_us, 1e-12));
  CHECK(close(empty(CollectiveKind::all_reduce, four, {0, 2, 4, 6}, nothing()), 6 * 18_us, 1e-12));
}

TEST_CASE(
    "with shipped constants 5 ms more on each link add that many times 5 ms, in closed form") {
  struct Machine {
    const char* preset;
    const char* profile;
    int near;  ///< links between neighbours of a server
    int far;   ///< between GPUs of two: PCIe switch, adapter, port and back
  };
  for (const Machine& m :
       {Machine{"dgx-1v", "v100-sxm2", 1, 6}, Machine{"dgx-2", "v100-sxm3", 3, 6},
        Machine{"dgx-a100", "a100-sxm4-80gb", 2, 6}, Machine{"dgx-h100", "h100-sxm5", 2, 6}}) {
    const topology::Cluster cluster = preset_named(m.preset, 4);
    const topology::Cluster slow = farther(cluster, 5_ms);
    const CollectiveConstants c = shipped(m.profile);
    const int k = cluster.gpus_per_node();
    const auto added = [&](CollectiveKind kind, const std::vector<int>& ranks) {
      return empty(kind, slow, ranks, c) - empty(kind, cluster, ranks, c);
    };
    INFO(m.preset);
    // A constant may contain some 100 ns more than the preset's links take: of 10 ms 1e-4 at most.
    CHECK(
        close(added(CollectiveKind::all_reduce, first_gpus(k)), 2 * (k - 1) * m.near * 5_ms, 1e-4));
    CHECK(close(added(CollectiveKind::all_gather, first_gpus(k)), (k - 1) * m.near * 5_ms, 1e-4));
    CHECK(close(added(CollectiveKind::send, {0, 1}), (m.near == 1 ? 1 : 2) * 5_ms, 1e-4));
    CHECK(close(added(CollectiveKind::send, {0, 2 * k}), m.far * 5_ms, 1e-4));
    CHECK(close(added(CollectiveKind::all_reduce, first_gpus(4 * k)),
                (2 * (4 * k - 4) * m.near + 2 * 3 * m.far) * 5_ms, 1e-4));
  }
}

TEST_CASE("NCCL's steps, too, take longer by their links, whatever the version's own constants") {
  // On N = 4 DGX A100, k = 8: two NVLinks from GPU to GPU; four PCIe links and two ports between
  // servers.
  const topology::Cluster cluster = preset_named("dgx-a100", 4);
  const topology::Cluster slow = farther(cluster, 5_ms);
  const Seconds near = 2 * 5_ms;
  const Seconds far = 6 * 5_ms;
  using nccl::Algorithm;
  const auto added = [&](CollectiveKind kind, Algorithm algorithm, const std::vector<int>& ranks,
                         const std::string& version) {
    const nccl::Constants& constants = nccl::constants_of(version);
    const auto of = [&](const topology::Cluster& on) {
      const auto communicator = nccl::Communicators(on, constants).of(ranks);
      const Hops hops = nccl::channel_loads(kind, algorithm, on, ranks, communicator).hops;
      return nccl::beyond_steps(kind, algorithm, communicator, constants, hops);
    };
    CHECK(of(cluster) < 1e-15_s);  // shipped servers are what constants contain, but for rounding
    return of(slow);
  };
  const std::vector<int> all = first_gpus(32);
  const std::vector<int> lone{0, 8, 16, 24};
  for (const char* version : {"2.8.4", "2.18.6", "2.28.9"}) {
    INFO(version);
    CHECK(close(added(CollectiveKind::all_reduce, Algorithm::ring, first_gpus(8), version),
                14 * near, 1e-4));
    CHECK(close(added(CollectiveKind::all_reduce, Algorithm::ring, all, version),
                (62 - 6) * near + 6 * far, 1e-4));
    for (const CollectiveKind kind : rings)
      CHECK(close(added(kind, Algorithm::ring, all, version), (31 - 3) * near + 3 * far, 1e-4));
    // Up and down: seven hops in a server's chain, log2(4) between.
    CHECK(close(added(CollectiveKind::all_reduce, Algorithm::tree, all, version),
                14 * near + 4 * far, 1e-4));
    CHECK(close(added(CollectiveKind::all_gather, Algorithm::pat, lone, version), 2 * far, 1e-4));
    CHECK(close(added(CollectiveKind::send, Algorithm::direct, {0, 1}, version), near, 1e-4));
    CHECK(close(added(CollectiveKind::send, Algorithm::direct, {0, 8}, version), far, 1e-4));
    CHECK(close(added(CollectiveKind::all_to_all, Algorithm::direct, all, version), far, 1e-4));
  }
  // Reduction in the switch: there and back in one step; between servers trees.
  const topology::Cluster hopper = farther(preset_named("dgx-h100", 4), 5_ms);
  const nccl::Constants& newest = nccl::constants_of("2.28.9");
  const auto in_switch = [&](Algorithm algorithm, const std::vector<int>& ranks) {
    const auto communicator = nccl::Communicators(hopper, newest).of(ranks);
    const auto kind = CollectiveKind::all_reduce;
    return nccl::beyond_steps(
        kind, algorithm, communicator, newest,
        nccl::channel_loads(kind, algorithm, hopper, ranks, communicator).hops);
  };
  CHECK(close(in_switch(Algorithm::nvls, first_gpus(8)), near, 1e-4));
  CHECK(close(in_switch(Algorithm::nvls_tree, first_gpus(32)), near + 4 * far, 1e-4));
}

TEST_CASE("what links add to NCCL's steps is added as it is, and changes no choice") {
  for (const char* preset : {"dgx-1v", "dgx-a100"}) {
    const topology::Cluster cluster = preset_named(preset, 2);
    const topology::Cluster slow = farther(cluster, 5_ms);
    const bool ampere = std::string(preset) == "dgx-a100";
    // The fit multiplies NCCL's latency by 1.48 and 0.94, and NCCL a ring's of many bytes by 1.9
    // and 1.4.
    const CollectiveConstants c = shipped(ampere ? "a100-sxm4-80gb" : "v100-sxm2");
    Collectives before(cluster, c, "2.12.12");
    Collectives after(slow, c, "2.12.12");
    const Route one = before.route(CollectiveKind::all_reduce, first_gpus(16), 1_GiB);
    const Route other = after.route(CollectiveKind::all_reduce, first_gpus(16), 1_GiB);
    INFO(preset);
    CHECK(one.limit == other.limit);
    // A100s take a ring of 16: 28 steps over two links within servers, 2 between them over six.
    // V100s take a tree: up and down seven steps over one link each, and one between.
    const int links = ampere ? 28 * 2 + 2 * 6 : 2 * (7 * 1 + 6);
    CHECK(close(other.latency - one.latency, links * 5_ms, 1e-4));
  }
}

TEST_CASE("copies to the host and to drives take their links' latency") {
  const topology::Cluster cluster = preset_named("dgx-1v", 1);
  const CollectiveConstants c = shipped("v100-sxm2");
  const auto copy = [&](CollectiveKind kind, const topology::Cluster& on) {
    return empty(kind, on, {0}, c);
  };
  for (const CollectiveKind kind : {CollectiveKind::to_host, CollectiveKind::from_host}) {
    CHECK(close(copy(kind, cluster), 31.1_us, 1e-9));  // its two PCIe links are in it
    CHECK(close(copy(kind, farther(cluster, 5_ms)), 31.1_us + 10_ms, 1e-9));
  }
  // From the processor to the drives: steps take nothing, links all of theirs.
  for (const CollectiveKind kind : {CollectiveKind::to_drives, CollectiveKind::from_drives}) {
    const Seconds added = copy(kind, farther(cluster, 5_ms)) - copy(kind, cluster);
    CHECK(close(added, 5_ms, 1e-9));
  }
}

TEST_CASE(
    "measured times of ranks on processors contain their server's links, and no longer ones") {
  const topology::Cluster cluster = preset_named("cpu-host", 1);
  const CollectiveConstants c = shipped("amd-epyc-2-ranks");
  const auto time = [&](CollectiveKind kind, const topology::Cluster& on) {
    return Collectives(on, c).route(kind, {0, 1}, 64_KiB).latency;
  };
  // A rank's share of memory, the link between sockets, the other share: 15 ms a step.
  for (const auto& [kind, steps] :
       {std::pair{CollectiveKind::all_reduce, 2}, std::pair{CollectiveKind::send, 1},
        std::pair{CollectiveKind::all_to_all, 1}, std::pair{CollectiveKind::broadcast, 1}}) {
    const Seconds added = time(kind, farther(cluster, 5_ms)) - time(kind, cluster);
    CHECK(close(added, steps * 15_ms, 1e-9));
  }
}

TEST_CASE(
    "nvlink_efficiency acts in closed form and with NCCL, with a fit of its bandwidths or not") {
  const topology::Cluster cluster = preset_named("dgx-a100", 1);
  const auto carried = [&](const CollectiveConstants& c, const std::string& version) {
    return Collectives(cluster, c, version).usable(cluster.links().front());
  };
  const auto rate = [&](const CollectiveConstants& c) {
    Collectives collectives(cluster, c, "2.18.6");
    return collectives.route(CollectiveKind::all_reduce, first_gpus(8), 1_GiB).limit;
  };
  REQUIRE(cluster.links().front().kind == LinkKind::nvlink);
  const BytesPerSecond datasheet = cluster.links().front().bandwidth;
  CollectiveConstants c = shipped("a100-sxm4-80gb");
  CollectiveConstants half = c;
  half.nvlink_efficiency.value /= 2;
  for (const char* version : {"", "2.7.8", "2.28.9"})
    CHECK(close(carried(half, version), 0.5 * carried(c, version), 1e-12));
  CHECK(close(carried(c, ""), c.nvlink_efficiency.value * datasheet, 1e-12));
  // What was fitted: 1.168 times the 20 GB/s of 25 that NCCL's search counts on.
  CHECK(close(carried(c, "2.18.6"), 1.168 * 20.0 / 25 * datasheet, 1e-5));
  // Rings run at 1.168 times their 12 x 20 GB/s, of which 8/14 is payload; what the GPU copies
  // besides does not depend on links.
  const auto ring = [&](const CollectiveConstants& constants) {
    return BytesPerSecond{1 / (1 / rate(constants).value - 1 / constants.nccl->copy.value.value)};
  };
  CHECK(close(ring(c), 1.168 * 240_GBps * (8.0 / 14), 1e-5));
  CHECK(close(ring(half), 0.5 * ring(c), 1e-9));
  // Without a fit an NVLink carries that share of its datasheet's rate, whatever the search counts
  // on.
  c.nccl = std::nullopt;
  c.nvlink_efficiency.value = 0.9;
  CHECK(close(carried(c, "2.18.6"), 0.9 * datasheet, 1e-12));
  CHECK(close(rate(c), 0.9 * 25.0 / 20 * 240_GBps * (8.0 / 14), 1e-9));
  // A server whose cables are twice as fast is twice as fast, though NCCL counts on no more.
  NodeDesign design = cluster.design();
  for (topology::Link& link : design.links) {
    if (link.kind == LinkKind::nvlink) link.bandwidth = 2 * link.bandwidth;
  }
  Collectives faster(topology::Cluster(design, 1, 25_GBps, 1_us), c, "2.18.6");
  CHECK(close(faster.route(CollectiveKind::all_reduce, first_gpus(8), 1_GiB).limit, 2 * rate(c),
              1e-9));
}

// Collectives between servers at what was measured: closed forms on small servers, and NCCL's ways.
#include "cost/port_shares.hpp"

#include <algorithm>
#include <numeric>

#include "cost/collectives.hpp"
#include "tests/catch.hpp"
#include "tests/cost/round_constants.hpp"
#include "topology/presets.hpp"

using namespace stratagem;
using namespace stratagem::cost;

namespace {

using topology::MeasuredCollective;
using topology::MeasuredCollectives;
using topology::NodeDesign;

/// Servers of two GPUs with fast links to one adapter of 10 GB/s.
topology::Cluster pairs(int servers, MeasuredCollectives measured) {
  NodeDesign design{.name = "pair", .gpu = "test", .vertices = {}, .links = {}};
  const auto a = design.add(topology::VertexKind::gpu, "gpu0");
  const auto b = design.add(topology::VertexKind::gpu, "gpu1");
  const auto nic = design.add(topology::VertexKind::nic, "nic0");
  design.join(a, b, topology::LinkKind::nvlink, 1, 1000_GBps, 1_us);
  for (const auto gpu : {a, b}) design.join(gpu, nic, topology::LinkKind::pcie, 1, 1000_GBps, 1_us);
  design.measured = std::move(measured);
  return {design, servers, 10_GBps, 1_us};
}

MeasuredCollective reached(int servers, Bytes payload, BytesPerSecond bandwidth) {
  return {.servers = servers, .payload = payload, .bus_bandwidth = bandwidth, .source = "test"};
}

std::vector<int> everyone(const topology::Cluster& cluster) {
  std::vector<int> ranks(static_cast<std::size_t>(cluster.gpus()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Seconds alone(CollectiveKind kind, const topology::Cluster& cluster, const std::vector<int>& ranks,
              Bytes payload, const std::string& nccl = "") {
  Collectives collectives(cluster, round_constants(), nccl);
  return collectives.alone(collectives.route(kind, ranks, payload), payload);
}

double share_of(const topology::Cluster& cluster, int ranks,
                CollectiveKind kind = CollectiveKind::all_reduce, const std::string& nccl = "") {
  const auto predicted = [&](const topology::Cluster& measured, CollectiveKind of, Bytes payload) {
    return Collectives(measured, round_constants(), nccl).route(of, everyone(measured), payload);
  };
  return PortShares(cluster, round_constants(), predicted).at(kind, ranks);
}

Seconds latency(CollectiveKind kind, const topology::Cluster& cluster) {
  return Collectives(cluster, round_constants()).route(kind, everyone(cluster), 1_GB).latency;
}

}  // namespace

TEST_CASE("an all-reduce as it was measured takes as long as it did") {
  for (const int servers : {2, 4, 8}) {
    const auto cluster = pairs(servers, {{reached(servers, 1_GB, 2_GBps)}, {}, {}});
    const double n = cluster.gpus();
    const Seconds took = 1_GB * (2 * (n - 1) / n) / 2_GBps;
    CHECK(close(alone(CollectiveKind::all_reduce, cluster, everyone(cluster), 1_GB), took, 1e-12));
    // Of twice the bytes all but the latency is twice as long.
    const Seconds fixed = latency(CollectiveKind::all_reduce, cluster);
    CHECK(close(alone(CollectiveKind::all_reduce, cluster, everyone(cluster), 2_GB) - fixed,
                (took - fixed) * 2.0, 1e-12));
  }
}

TEST_CASE("collectives between servers slow down alike, messages and single servers do not") {
  const auto slow = pairs(4, {{reached(4, 1_GB, 2_GBps)}, {}, {}});
  const auto free = pairs(4, {});
  const double share = share_of(slow, 8);
  CHECK(share < 0.5);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_to_all, CollectiveKind::broadcast}) {
    const Seconds fixed = latency(kind, slow);
    CHECK(close((alone(kind, slow, everyone(slow), 1_GB) - fixed) * share,
                alone(kind, free, everyone(free), 1_GB) - fixed, 1e-12));
  }
  CHECK(alone(CollectiveKind::send, slow, {0, 2}, 1_GB) ==
        alone(CollectiveKind::send, free, {0, 2}, 1_GB));
  CHECK(alone(CollectiveKind::all_reduce, slow, {0, 1}, 1_GB) ==
        alone(CollectiveKind::all_reduce, free, {0, 1}, 1_GB));
}

TEST_CASE("kinds that were measured take what they took, the others an all-reduce's share") {
  const auto cluster = pairs(4, {{reached(4, 1_GB, 4_GBps)}, {reached(4, 1_GB, 1_GBps)}, {}});
  const double n = cluster.gpus();
  const auto take = [&](CollectiveKind kind) {
    return alone(kind, cluster, everyone(cluster), 1_GB);
  };
  CHECK(close(take(CollectiveKind::all_gather), 1_GB * ((n - 1) / n) / 1_GBps, 1e-12));
  CHECK(close(take(CollectiveKind::all_reduce), 1_GB * (2 * (n - 1) / n) / 4_GBps, 1e-12));
  const auto without = pairs(4, {{reached(4, 1_GB, 4_GBps)}, {}, {}});
  CHECK(take(CollectiveKind::reduce_scatter) ==
        alone(CollectiveKind::reduce_scatter, without, everyone(without), 1_GB));
  const auto scattered = pairs(4, {{reached(4, 1_GB, 4_GBps)}, {}, {reached(4, 1_GB, 3_GBps)}});
  CHECK(close(alone(CollectiveKind::reduce_scatter, scattered, everyone(scattered), 1_GB),
              1_GB * ((n - 1) / n) / 3_GBps, 1e-12));
}

TEST_CASE("groups of one GPU a server have the share of as many ranks elsewhere") {
  const auto slow = pairs(4, {{reached(4, 1_GB, 2_GBps)}, {}, {}});
  const auto free = pairs(4, {});
  const double share = share_of(slow, 4);
  const std::vector<int> group{1, 3, 5, 7};
  const Route taken =
      Collectives(slow, round_constants()).route(CollectiveKind::all_reduce, group, 1_GB);
  const Route plain =
      Collectives(free, round_constants()).route(CollectiveKind::all_reduce, group, 1_GB);
  REQUIRE(taken.loads.size() == plain.loads.size());
  for (std::size_t i = 0; i < taken.loads.size(); ++i) {
    const bool port = is_port(slow, taken.loads[i].direction.link);
    CHECK(close(taken.loads[i].load * (port ? share : 1), plain.loads[i].load, 1e-12));
  }
}

TEST_CASE("other numbers of ranks have what lies between the measurements, or the nearest one") {
  const std::vector<MeasuredCollective> measured{reached(4, 10_GB, 8_GBps),
                                                 reached(16, 10_GB, 2_GBps)};
  for (const MeasuredCollective& one : measured) {
    const auto cluster = pairs(one.servers, {measured, {}, {}});
    const double n = cluster.gpus();
    CHECK(close(alone(CollectiveKind::all_reduce, cluster, everyone(cluster), 10_GB),
                10_GB * (2 * (n - 1) / n) / one.bus_bandwidth, 1e-12));
  }
  const auto cluster = pairs(64, {measured, {}, {}});
  const double few = share_of(cluster, 8), many = share_of(cluster, 32);
  // A ring's share is its bus bandwidth over the ports' rate, but for its latency.
  CHECK(close(few / many, 4, 1e-3));
  CHECK(close(share_of(cluster, 16), (few + many) / 2, 1e-12));
  CHECK(share_of(cluster, 2) == few);
  CHECK(share_of(cluster, 128) == many);
}

TEST_CASE("measured faster than the ports, or than latencies alone, says nothing of them") {
  for (const Bytes payload : {1_GB, 1_B}) {
    const auto cluster = pairs(4, {{reached(4, payload, 1000_GBps)}, {}, {}});
    CHECK(share_of(cluster, 8) == 1);
  }
}

TEST_CASE("NCCL's all-reduces take what was measured, too") {
  const topology::Cluster preset =
      std::ranges::find(topology::presets(), "dgx-a100", &topology::Preset::name)->build(1);
  topology::NodeDesign design = preset.design();
  design.measured.all_reduces = {reached(4, 4_GB, 20_GBps)};
  const topology::Cluster cluster(design, 8, preset.fabric().design());
  std::vector<int> ranks(32);
  std::iota(ranks.begin(), ranks.end(), 0);
  CHECK(close(alone(CollectiveKind::all_reduce, cluster, ranks, 4_GB, "2.18.6"),
              4_GB * (2 * 31.0 / 32) / 20_GBps, 1e-9));
  // A group of one GPU a server has the share of its adapters, as all have.
  const topology::Cluster free(preset.design(), 8, preset.fabric().design());
  const std::vector<int> one_each{3, 11, 19, 27};
  const double share = share_of(cluster, 4, CollectiveKind::reduce_scatter, "2.18.6");
  const Route taken = Collectives(cluster, round_constants(), "2.18.6")
                          .route(CollectiveKind::reduce_scatter, one_each, 1_GB);
  const Route plain = Collectives(free, round_constants(), "2.18.6")
                          .route(CollectiveKind::reduce_scatter, one_each, 1_GB);
  CHECK(share < 0.2);
  CHECK(taken.latency == plain.latency);
  REQUIRE(taken.loads.size() == plain.loads.size());
  for (std::size_t i = 0; i < taken.loads.size(); ++i) {
    const bool port = is_port(cluster, taken.loads[i].direction.link);
    CHECK(close(taken.loads[i].load * (port ? share : 1), plain.loads[i].load, 1e-9));
  }
}

TEST_CASE("an all-to-all of equal parts takes as long, said part by part") {
  const auto slow = pairs(2, {{reached(2, 1_GB, 2_GBps)}, {}, {}});
  Collectives collectives(slow, round_constants());
  const std::vector<int> ranks = everyone(slow);
  const Parts parts(ranks.size(), std::vector<Bytes>(ranks.size(), 1_MB));
  const auto [route, payload] = collectives.all_to_all(ranks, parts);
  const Route equal = collectives.route(CollectiveKind::all_to_all, ranks, 4_MB);
  CHECK(close(collectives.alone(route, payload), collectives.alone(equal, 4_MB), 1e-9));
}

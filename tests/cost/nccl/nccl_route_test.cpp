// Loads of NCCL's channels: what links carry, and that they leave a lone collective its predicted
// time.
#include <map>

#include "cost/collectives.hpp"
#include "cost/nccl/route.hpp"
#include "tests/catch.hpp"
#include "tests/cost/nccl/nccl_machines.hpp"

using namespace stratagem;
using namespace stratagem::cost;

namespace {

constexpr std::array reductions_and_copies{CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                           CollectiveKind::reduce_scatter,
                                           CollectiveKind::broadcast, CollectiveKind::reduce};

CollectiveConstants constants_of_gpu(const std::string& name) {
  const bool ampere = name == "dgx-a100";
  const std::string profile = ampere ? "a100-sxm4-80gb" : "v100-sxm2";
  CollectiveConstants constants =
      read_profile("scenarios/profiles/" + profile + ".json").collective;
  const bool measured = ampere || name == "dgx-1v" || name == "dgx-2";
  if (!measured) constants.nccl = std::nullopt;
  return constants;
}

/// The rate that the busiest link leaves the payload.
BytesPerSecond slowest_link(const Collectives& collectives, const Route& route) {
  double seconds_per_byte = 0;
  for (const LinkLoad& load : route.loads) {
    const topology::Link& link = collectives.cluster().links()[load.direction.link];
    seconds_per_byte = std::max(seconds_per_byte, load.load / collectives.usable(link).value);
  }
  return {1 / seconds_per_byte};
}

/// Bytes out of adapters and into them per byte of payload.
std::pair<double, double> over_the_network(const topology::Cluster& cluster,
                                           const std::vector<LinkLoad>& loads) {
  std::pair<double, double> result;
  for (const LinkLoad& load : loads) {
    if (cluster.links()[load.direction.link].kind != topology::LinkKind::network) continue;
    (load.direction.forward ? result.first : result.second) += load.load;
  }
  return result;
}

}  // namespace

TEST_CASE(
    "alone, a collective takes what NCCL predicts: its links carry the channels found on them") {
  for (const SolvedMachine& machine : solved_machines()) {
    if (machine.nodes > 16) continue;
    const topology::Cluster cluster = machine.cluster();
    Collectives collectives(cluster, constants_of_gpu(machine.name), "2.28.9");
    for (const CollectiveKind kind : reductions_and_copies) {
      for (const Bytes payload : {64_KiB, 1_MiB, 16_MiB, 1_GiB}) {
        const Route route = collectives.route(kind, machine.ranks(), payload);
        INFO(machine.text() << ", " << to_text(kind) << " of " << payload / 1_MiB << " MiB");
        CHECK(route.latency > Seconds{});
        CHECK(slowest_link(collectives, route) > route.limit * (1 - 1e-9));
      }
    }
  }
}

TEST_CASE("every server of a ring sends one edge and receives one, over all its adapters evenly") {
  const topology::Cluster cluster = preset_named("dgx-a100", 4);
  const nccl::Constants& constants = nccl::constants_of("2.28.9");
  const auto communicator = nccl::Communicators(cluster, constants).of(first_gpus(32));
  const auto loads = nccl::channel_loads(CollectiveKind::all_reduce, nccl::Algorithm::ring, cluster,
                                         first_gpus(32), communicator)
                         .loads;
  // Four servers, 2 (n-1)/n bytes along an edge.
  const auto [out, in] = over_the_network(cluster, loads);
  CHECK(close(out, 4 * 2 * 31.0 / 32, 1e-9));
  CHECK(close(in, out, 1e-9));
  for (const LinkLoad& load : loads) {
    if (cluster.links()[load.direction.link].kind != topology::LinkKind::network) continue;
    CHECK(close(load.load, 2 * 31.0 / 32 / 8, 1e-9));
  }
}

TEST_CASE("two trees over N servers move the payload N-1 times up and N-1 times down") {
  for (const int nodes : {2, 3, 4, 7}) {
    const topology::Cluster cluster = preset_named("dgx-2", nodes);
    const nccl::Constants& constants = nccl::constants_of("2.12.12");
    const auto ranks = first_gpus(cluster.gpus());
    const auto communicator = nccl::Communicators(cluster, constants).of(ranks);
    const auto loads = nccl::channel_loads(CollectiveKind::all_reduce, nccl::Algorithm::tree,
                                           cluster, ranks, communicator)
                           .loads;
    const auto [out, in] = over_the_network(cluster, loads);
    CHECK(close(out, 2.0 * (nodes - 1), 1e-9));
    CHECK(close(in, out, 1e-9));
  }
}

TEST_CASE("a reduction in the switch takes the payload and a share of it off every GPU") {
  const topology::Cluster cluster = preset_named("dgx-h100", 1);
  const nccl::Constants& constants = nccl::constants_of("2.28.9");
  const auto communicator = nccl::Communicators(cluster, constants).of(first_gpus(8));
  double total = 0;
  const auto carried = nccl::channel_loads(CollectiveKind::all_reduce, nccl::Algorithm::nvls,
                                           cluster, first_gpus(8), communicator);
  for (const LinkLoad& load : carried.loads) {
    total += load.load;
  }
  CHECK(close(total, 8 * 2 * (1 + 1.0 / 8), 1e-9));
}

TEST_CASE("a ring of five GPUs of a DGX-1V passes GPU 0 twice") {
  // GPU 4 hangs on GPU 0 alone: what another GPU sends it crosses two cables, so the five edges of
  // each of two rings are six loads of half of 2 (n-1)/n.
  const topology::Cluster cluster = preset_named("dgx-1v", 1);
  Collectives collectives(cluster, constants_of_gpu("dgx-1v"), "2.12.12");
  double total = 0;
  for (const LinkLoad& load :
       collectives.route(CollectiveKind::all_reduce, first_gpus(5), 1_GiB).loads) {
    CHECK(cluster.links()[load.direction.link].kind == topology::LinkKind::nvlink);
    total += load.load;
  }
  CHECK(close(total, 6 * 2 * 4.0 / 5, 1e-9));
}

TEST_CASE("without a version collectives are rings in closed form, one way for all payloads") {
  const topology::Cluster cluster = preset_named("dgx-2", 2);
  const CollectiveConstants constants = constants_of_gpu("dgx-2");
  Collectives collectives(cluster, constants);
  const auto routed =
      collectives.routes(CollectiveKind::all_reduce, first_gpus(32), {1_KiB, 1_GiB});
  REQUIRE(routed.size() == 1);
  CHECK(routed[0].payloads.empty());
  CHECK(routed[0].route.latency ==
        ring_route(CollectiveKind::all_reduce, cluster, first_gpus(32), constants).latency);
}

TEST_CASE("with NCCL payloads that are done in one way share a route") {
  const topology::Cluster cluster = preset_named("dgx-1v", 1);
  Collectives collectives(cluster, constants_of_gpu("dgx-1v"), "2.12.12");
  // LL128 up to 14 MiB, Simple beyond.
  const auto routed =
      collectives.routes(CollectiveKind::all_reduce, first_gpus(8), {2_MiB, 8_MiB, 16_MiB, 64_MiB});
  REQUIRE(routed.size() == 2);
  CHECK(routed[0].payloads == std::vector{2_MiB, 8_MiB});
  CHECK(routed[1].payloads == std::vector{16_MiB, 64_MiB});
}

TEST_CASE("sends between two A100 take what was measured within a factor of two up to 64 KiB") {
  // Vidur: 8, 13 and 16 us for 2, 18 and 66 KiB over NVLink. 8.4 + 3.4 us and the bytes.
  const topology::Cluster cluster = preset_named("dgx-a100", 1);
  const CollectiveConstants constants = constants_of_gpu("dgx-a100");
  Collectives collectives(cluster, constants, "2.18.6");
  for (const auto& [payload, measured] :
       {std::pair{2048_B, 8_us}, std::pair{18432_B, 13_us}, std::pair{67584_B, 16_us}}) {
    const Route route = collectives.route(CollectiveKind::send, {0, 1}, payload);
    const Seconds predicted = route.latency + payload / slowest_link(collectives, route);
    CHECK(predicted / measured > 0.5);
    CHECK(predicted / measured < 2);
  }
}

TEST_CASE(
    "channels cross leaves and spines: what comes to a switch goes on, and uplinks are felt") {
  // Eight DGX A100 with rails, two on a leaf: a ring's edge leaves every other server's leaves.
  using namespace topology;
  const Cluster switched = preset_named("dgx-a100", 8);
  FabricDesign design{.kind = FabricKind::fat_tree, .speed = network_speed("HDR")};
  design.rails = 8;
  design.ports_per_leaf = 2;
  const Cluster cluster(switched.design(), 8, design);
  const nccl::Constants& constants = nccl::constants_of("2.28.9");
  const auto ranks = first_gpus(64);
  const auto communicator = nccl::Communicators(cluster, constants).of(ranks);
  for (const auto algorithm : {nccl::Algorithm::ring, nccl::Algorithm::tree}) {
    std::map<VertexId, double> net;
    double up = 0;
    const Carried carried =
        nccl::channel_loads(CollectiveKind::all_reduce, algorithm, cluster, ranks, communicator);
    for (const LinkLoad& load : carried.loads) {
      const Link& link = cluster.links()[load.direction.link];
      const double forward = load.direction.forward ? load.load : -load.load;
      net[link.a] -= forward;
      net[link.b] += forward;
      if (cluster.vertices()[link.a].kind == VertexKind::fabric && forward > 0) up += forward;
    }
    for (const auto& [vertex, left] : net) {
      if (cluster.vertices()[vertex].kind == VertexKind::fabric) CHECK(std::abs(left) < 1e-9);
    }
    CHECK(up > 0);
    // Of a ring's eight edges of 2 x 63/64 bytes four go up to a spine.
    if (algorithm == nccl::Algorithm::ring) CHECK(close(up, 4 * 2.0 * 63 / 64, 1e-9));
  }
}

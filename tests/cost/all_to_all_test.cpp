// All-to-alls of unequal parts: equal ones as a limit, nothing to send, and conservation.
#include "cost/all_to_all.hpp"

#include <map>
#include <numeric>

#include "base/input_error.hpp"
#include "cost/collectives.hpp"
#include "tests/catch.hpp"
#include "tests/cost/round_constants.hpp"
#include "tests/cost/servers.hpp"

using namespace stratagem;
using namespace stratagem::cost;

namespace {

Parts all(int n, Bytes part) { return Parts(n, std::vector<Bytes>(n, part)); }

/// Rank i has i + 2j + 1 MB for rank j.
Parts uneven(int n) {
  Parts parts = all(n, 0_MB);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) parts[i][j] = (i + 2 * j + 1) * 1_MB;
  }
  return parts;
}

/// Closed form and NCCL's; servers with switches, with cables, and several of them.
template <typename Check>
void for_each_network(const Check& check) {
  for (const auto& [name, nodes, ranks] :
       {std::tuple{"dgx-a100", 1, 8}, {"dgx-1v", 1, 4}, {"dgx-a100", 2, 16}}) {
    for (const std::string version : {"", "2.18.6"}) {
      INFO(name << " x " << nodes << ", NCCL " << version);
      Collectives collectives(preset(name, nodes), round_constants(), version);
      check(collectives, first(ranks));
    }
  }
}

}  // namespace

TEST_CASE("with equal parts an all-to-all of parts is the all-to-all, to the bit") {
  for_each_network([](Collectives& collectives, const std::vector<int>& ranks) {
    const auto n = static_cast<int>(ranks.size());
    const auto [route, payload] = collectives.all_to_all(ranks, all(n, 3_MB));
    CHECK(payload == n * 3_MB);
    const Route equal = collectives.route(CollectiveKind::all_to_all, ranks, payload);
    CHECK(route.latency == equal.latency);
    REQUIRE(route.loads.size() == equal.loads.size());
    for (std::size_t i = 0; i < equal.loads.size(); ++i) {
      CHECK(route.loads[i].direction == equal.loads[i].direction);
      CHECK(route.loads[i].load == equal.loads[i].load);
    }
    CHECK(collectives.alone(route, payload) == collectives.alone(equal, payload));
  });
}

TEST_CASE("with nothing to send, or nothing for others, an all-to-all costs its latency") {
  for_each_network([](Collectives& collectives, const std::vector<int>& ranks) {
    const auto n = static_cast<int>(ranks.size());
    Parts own = all(n, 0_MB);
    for (int i = 0; i < n; ++i) own[i][i] = 100_MB;
    for (const Parts& parts : {all(n, 0_MB), own}) {
      const auto [route, payload] = collectives.all_to_all(ranks, parts);
      CHECK(route.loads.empty());
      CHECK(route.latency > 0_s);
      CHECK(collectives.alone(route, payload) == route.latency);
    }
  });
}

TEST_CASE("what each rank sends leaves its GPU, and what is for it arrives there") {
  for_each_network([](Collectives& collectives, const std::vector<int>& ranks) {
    const auto n = static_cast<int>(ranks.size());
    const Parts parts = uneven(n);
    const auto [route, payload] = collectives.all_to_all(ranks, parts);
    const topology::Cluster& cluster = collectives.cluster();
    std::map<topology::VertexId, double> net;  // bytes out less bytes in
    for (const LinkLoad& load : route.loads) {
      const topology::Link& link = cluster.links()[load.direction.link];
      net[load.direction.forward ? link.a : link.b] += load.load * payload.value;
      net[load.direction.forward ? link.b : link.a] -= load.load * payload.value;
    }
    int rank = 0;
    for (topology::VertexId id = 0; id < static_cast<int>(cluster.vertices().size()); ++id) {
      double expected = 0;  // of whatever stands between GPUs
      if (cluster.vertices()[id].kind == topology::VertexKind::gpu && rank < n) {
        for (int other = 0; other < n; ++other)
          expected += (parts[rank][other] - parts[other][rank]).value;
        ++rank;
      }
      CHECK(std::abs(net[id] - expected) < 1e-3);  // of some hundred million
    }
  });
}

TEST_CASE("one rank that sends to all others is as slow as what leaves it") {
  // 7 x 100 MB over 12 NVLinks of 25 GB/s, and the latency of one step.
  Collectives collectives(preset("dgx-a100", 1), round_constants());
  Parts parts = all(8, 0_MB);
  std::ranges::fill(parts[3], 100_MB);
  const auto [route, payload] = collectives.all_to_all(first(8), parts);
  CHECK(payload == 800_MB);
  CHECK(close(collectives.alone(route, payload), 11_us + 700_MB / 300_GBps, 1e-9));
}

TEST_CASE("tables that are not square, or of negative parts, are refused") {
  Collectives collectives(preset("dgx-a100", 1), round_constants());
  Parts negative = all(4, 1_MB);
  negative[2][1] = -1 * 1_MB;
  Parts ragged = all(4, 1_MB);
  ragged[0].pop_back();
  for (const Parts& parts : {all(3, 1_MB), negative, ragged})
    CHECK_THROWS_AS(collectives.all_to_all(first(4), parts), InputError);
}

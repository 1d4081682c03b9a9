// Measured times: on the points what was measured, between them lines, beyond them what is said.
#include "cost/measured_times.hpp"

#include "base/input_error.hpp"
#include "base/json_writer.hpp"
#include "cost/collectives.hpp"
#include "tests/catch.hpp"
#include "topology/presets.hpp"

using namespace stratagem;
using namespace stratagem::cost;

namespace {

/// On 2 ranks 3 us + S / (1 GB/s), as two lines of one slope; on 4 twice that.
CollectiveTimes straight() {
  return {.by_ranks = {{2, {{1_KB, 4_us}, {4_KB, 7_us}, {100_KB, 103_us}}},
                       {4, {{1_KB, 8_us}, {4_KB, 14_us}, {100_KB, 206_us}}}},
          .source = "test"};
}

TEST_CASE("between measured payloads and ranks times lie on straight lines") {
  const CollectiveTimes times = straight();
  CHECK(close(measured_time(times, 2, 4_KB), 7_us, 1e-12));
  CHECK(close(measured_time(times, 2, 2_KB), 5_us, 1e-12));
  CHECK(close(measured_time(times, 4, 50_KB), 106_us, 1e-12));
  CHECK(close(measured_time(times, 3, 50_KB), 79.5_us, 1e-12));  // halfway between 53 and 106
}

TEST_CASE("below the smallest payload the time stays, above the largest the rate does") {
  const CollectiveTimes times = straight();
  CHECK(close(measured_time(times, 2, 1_B), 4_us, 1e-12));
  CHECK(close(measured_time(times, 2, 1_GB), 3_us + 1_GB / 1_GBps, 1e-12));
  const CollectiveTimes one{.by_ranks = {{2, {{1_KB, 4_us}}}}, .source = "test"};
  CHECK(close(measured_time(one, 2, 1_MB), 4_ms, 1e-12));
  const CollectiveTimes falling{.by_ranks = {{2, {{1_KB, 4_us}, {2_KB, 3_us}}}}, .source = "test"};
  CHECK(close(measured_time(falling, 2, 2_MB), 3_ms, 1e-12));
}

TEST_CASE("more ranks than were measured are refused, fewer than the least take its time") {
  CHECK_THROWS_WITH(measured_time(straight(), 5, 1_KB),
                    ContainsSubstring("collectives measured on 5 ranks of a server") &&
                        ContainsSubstring("up to 4"));
  CollectiveTimes four = straight();
  four.by_ranks.erase(2);
  CHECK(close(measured_time(four, 2, 1_KB), 8_us, 1e-12));
}

TEST_CASE(
    "latency and limit of a route come to the time, also where a line is below nothing or falls") {
  // From 4 us at 1 KB to 100 us at 2 KB: at payload 0 the line is at -92 us.
  const CollectiveTimes steep{.by_ranks = {{2, {{1_KB, 4_us}, {2_KB, 100_us}, {3_KB, 90_us}}}},
                              .source = "test"};
  for (const CollectiveTimes& times : {straight(), steep}) {
    for (const Bytes payload : {10_B, 1_KB, 1500_B, 2_KB, 2500_B, 3_KB, 1_MB}) {
      const Route route = measured_route(times, 2, payload);
      CHECK(route.latency >= 0_s);
      CHECK(close(route.latency + payload / route.limit, measured_time(times, 2, payload), 1e-9));
      CHECK(route.loads.empty());
    }
  }
}

topology::Cluster processors(int nodes) {
  for (const topology::Preset& entry : topology::presets())
    if (entry.name == "cpu-host") return entry.build(nodes);
  throw std::runtime_error("no such preset");
}

CollectiveConstants measured_constants() {
  CollectiveConstants constants;
  constants.network_efficiency = constants.pcie_efficiency = Constant<double>{.value = 0.5};
  constants.memory_efficiency = Constant<double>{.value = 0.25};
  constants.base = Constant<Seconds>{.value = 1_ms};
  constants.times["all_reduce"] = straight();
  // What was measured took the links of this very server.
  constants.node_link_latency = Constant<Seconds>{.value = processors(1).latency(0, 1)};
  return constants;
}

TEST_CASE("groups within a server take measured times, those between servers the formula") {
  const topology::Cluster cluster = processors(2);  // two ranks on each of two servers
  Collectives collectives(cluster, measured_constants());
  const auto time = [&](const std::vector<int>& ranks) {
    return collectives.alone(collectives.route(CollectiveKind::all_reduce, ranks, 100_KB), 100_KB);
  };
  CHECK(close(time({0, 1}), 103_us, 1e-9));
  CHECK(close(time({2, 3}), 103_us, 1e-9));
  CHECK(time({0, 2}) > 1_ms);
  CHECK(time({1}) == 0_s);
}

TEST_CASE("a kind that was not measured where others were is missed") {
  const topology::Cluster cluster = processors(1);
  Collectives collectives(cluster, measured_constants());
  CHECK_THROWS_WITH(collectives.route(CollectiveKind::broadcast, {0, 1}, 1_KB),
                    ContainsSubstring("/profile: expected times of broadcast under collective"));
}

TEST_CASE("every payload has a way of its own, as the sum of latency and flow says") {
  const topology::Cluster cluster = processors(1);
  Collectives collectives(cluster, measured_constants());
  const auto ways = collectives.routes(CollectiveKind::all_reduce, {0, 1}, {2_KB, 50_KB});
  REQUIRE(ways.size() == 2);
  CHECK(ways[0].payloads == std::vector{2_KB});
  CHECK(close(collectives.alone(ways[0].route, 2_KB), 5_us, 1e-9));
  CHECK(close(collectives.alone(ways[1].route, 50_KB), 53_us, 1e-9));
}

}  // namespace

// What a link must carry, counted by hand, and against simulations of nothing but collectives.
#include "sim/busiest_link.hpp"

#include "sim/metrics.hpp"
#include "sim/steady.hpp"
#include "tests/catch.hpp"
#include "tests/sim/hand_built.hpp"

namespace stratagem::sim {
namespace {

/// Two pairs of devices; a pair is a communicator.
HandBuilt two_pairs(const std::vector<Step>& steps) {
  HandBuilt built;
  built.add_sequence(steps);
  for (const int pair : {0, 0, 1, 1}) built.add_device(0, {pair});
  return built;
}

Seconds bound(const HandBuilt& built, const Folding& folding) {
  return busiest_link(built.program, folding);
}

}  // namespace

TEST_CASE("a link carries what all communicators put on it, once for all members of each") {
  const HandBuilt built = two_pairs({collective(Bytes{100e6}), kernel(7), collective(Bytes{50e6})});
  CHECK(close(bound(built, on_one_link(built.program)), Seconds{300e-6}, 1e-6));
  Folding folding = on_one_link(built.program);
  folding.link_uses[0][1].load = 3;  // the second pair's
  CHECK(close(bound(built, folding), Seconds{600e-6}, 1e-6));
  folding.flows[0].parts[0].count = 5;  // as if the first pair stood for five
  CHECK(close(bound(built, folding), Seconds{1200e-6}, 1e-6));
  folding.capacities[0] = 2 * byte_per_picosecond;
  CHECK(close(bound(built, folding), Seconds{600e-6}, 1e-6));
}

TEST_CASE("each kind and payload is on the links of its own flow, each call counts") {
  const auto gather = CollectiveKind::all_gather, reduce = CollectiveKind::all_reduce;
  HandBuilt built = two_pairs(
      {collective(Bytes{100e6}), collective(Bytes{50e6}, {}, Stream::communication, 0, gather)});
  Folding folding = on_one_link(built.program, {reduce, gather});
  folding.flows[0].payloads = folding.flows[2].payloads = {Bytes{60e6}};  // none for 100 MB
  CHECK(close(bound(built, folding), Seconds{100e-6}, 1e-6));
  folding.flows[0].payloads = {Bytes{60e6}, Bytes{100e6}};
  CHECK(close(bound(built, folding), Seconds{200e-6}, 1e-6));
  const program::StoredCall call = {.block = 0, .segment = -1, .cell = {}, .waits = {}};
  built.program.sequences[0].calls = program::Calls{call, call};
  CHECK(close(bound(built, folding), Seconds{400e-6}, 1e-6));
  built.program.lag = 1;
  CHECK(bound(built, folding) == Seconds{});
}

TEST_CASE("collectives that follow each other on one link take the bound, and never less") {
  const HandBuilt built = two_pairs({collective(Bytes{100e6}), collective(Bytes{50e6})});
  const Folding folding = on_one_link(built.program);
  const Timeline timeline = run_until_steady(built.program, folding, built.prices, {});
  const Seconds taken = metrics(built.program, timeline, {}).iteration_time;
  CHECK(bound(built, folding) <= taken);
  CHECK(close(bound(built, folding), taken, 1e-3));
}

}  // namespace stratagem::sim

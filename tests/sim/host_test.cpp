// What the host waits for changes times and memory at once, since there is one clock.
#include "sim/host.hpp"

#include "sim/device_memory.hpp"
#include "sim/engine.hpp"
#include "sim/steady.hpp"
#include "tests/catch.hpp"
#include "tests/sim/lowered.hpp"
#include "tests/sim/unit_chain.hpp"

namespace stratagem::sim {
namespace {

struct Answer {
  std::int64_t period;  ///< picoseconds
  Bytes reserved;
};

/// Of a GPT on two stages, all forward passes first.
Answer answer(const std::vector<cost::Rule>& waits, int queue = 1000) {
  const cost::Profile profile = cost::read_profile("scenarios/profiles/v100-sxm3-450w.json");
  cost::Stack stack{.slowdown = {1}, .host_factor = {1}};
  stack.memory.allocator = cost::MemoryFacts::Allocator::caching;
  stack.rules = waits;
  const program::Program program =
      lowered_gpt(4, 8, {.pipeline = 2, .data = 2, .schedule = "gpipe"}, stack);
  Folding folding = fold(program, cluster("dgx-1v", 1), profile.collective, false);
  folding.launch_queue = queue;
  const Timeline timeline = run_until_steady(program, folding, price(program, profile, stack));
  return {timeline.measured_period().count,
          highest(device_memory(program, timeline, profile, stack)).reserved};
}

/// Units that one micro-batch takes on two stages whose ends are on both devices: ends take 5, F 7
/// and B 11, and each launch of what takes time takes 1.
double with_shared_ends(const std::vector<cost::Rule>& waits, int pass = 0) {
  cost::Stack stack;
  stack.rules = waits;
  const program::Program program = UnitPipeline::lowered(
      R"({"pipeline": 2, "schedule": "gpipe", "embedding": "all", "head": "all"})",
      chain(2, 1, true), 1, stack);
  Prices prices = unit_prices(program, {.forward = 7, .input = 11, .weight = 0, .end = 5});
  for (std::vector<Price>& block : prices) {
    for (Price& one : block) {
      if (one.device.count > 0) one.host = one.first_launch = {unit};
    }
  }
  Folding folding = fold(program, instant_cluster(2), ideal_network(), false);
  folding.pass = {pass * unit};
  const Timeline timeline = run(program, folding, prices, 1);
  return static_cast<double>(timeline.iteration_ends.front().picoseconds) / unit;
}

}  // namespace

TEST_CASE("where stages share devices, cells before which hosts wait begin a launch later") {
  // Eight cells follow each other: embedding, F, F, head, and back. A host that does not wait is
  // ahead of its device but for the first launch. The forward cells are the first of the
  // micro-batch on their stages. Four cells read what the other device sent: F of the second stage,
  // the head on the first device, and the backward cells of the first stage and of the embedding on
  // the second.
  const double cells = 4 * 5 + 2 * 7 + 2 * 11;
  using cost::HostWaits;
  CHECK(with_shared_ends({}) == cells + 1);
  CHECK(with_shared_ends({HostWaits::each_micro_batch}) == cells + 4);
  CHECK(with_shared_ends({HostWaits::each_received_pass}) == cells + 5);
  CHECK(with_shared_ends({HostWaits::each_exchange}) == cells + 8);
  CHECK(with_shared_ends({HostWaits::each_pass}) == cells + 8);
  CHECK(with_shared_ends({HostWaits::each_launch}) == cells + 8);
}

TEST_CASE("what the host does for a pass is seen where it waits for the device before") {
  const double cells = 4 * 5 + 2 * 7 + 2 * 11;
  const cost::Rule work = cost::PassWork{.launches = 1};
  // A host that does not wait is ahead of its device but for the first pass.
  CHECK(with_shared_ends({work}, 3) == cells + 1 + 3);
  CHECK(with_shared_ends({work, cost::HostWaits::each_pass}, 3) == cells + 8 * (1 + 3));
  CHECK(with_shared_ends({cost::HostWaits::each_pass}, 3) == cells + 8);
}

TEST_CASE("a host that waits more often takes longer and reserves no more") {
  const Answer micro_batch = answer({});
  const Answer pass = answer({cost::HostWaits::each_pass});
  const Answer launch = answer({cost::HostWaits::each_launch});
  CHECK(micro_batch.period <= pass.period);
  CHECK(pass.period < launch.period);
  CHECK(micro_batch.reserved >= pass.reserved);
  CHECK(pass.reserved >= launch.reserved);
  // In a queue of one launch each kernel waits for the one before it on its stream.
  CHECK(answer({}, 1).period > micro_batch.period);
}

}  // namespace stratagem::sim

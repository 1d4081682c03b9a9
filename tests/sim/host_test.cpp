// What the host waits for changes times and memory at once, since there is one clock.
#include "sim/host.hpp"

#include "sim/device_memory.hpp"
#include "sim/engine.hpp"
#include "tests/catch.hpp"
#include "tests/sim/lowered.hpp"

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
  const std::vector<Instant>& ends = timeline.iteration_ends;
  return {(ends.back() - ends[ends.size() - 2]).count,
          highest(device_memory(program, timeline, profile, stack)).reserved};
}

}  // namespace

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

// The bound against what the simulation finds, and where both are one.
#include "sim/least_memory.hpp"

#include "sim/device_memory.hpp"
#include "tests/catch.hpp"
#include "tests/sim/priced_by_name.hpp"
#include "tests/sim/random_plan.hpp"

namespace stratagem::sim::least_memory_test {

namespace {

/// What does not come from the program: so much for each of the three.
cost::Profile profile() {
  cost::Profile profile;
  profile.memory.size.value = 1_TB;
  profile.memory.context.value = 1_GB;
  return profile;
}

cost::Stack stack() {
  cost::Stack stack = lowering::plain_stack();
  stack.memory.allocator = cost::MemoryFacts::Allocator::none;
  stack.memory.workspace = cost::Constant<Bytes>{.value = 2_MB, .source = "test"};
  return stack;
}

/// The bound, and what the simulation finds.
struct Both {
  Bytes least, found;
};

Both both(const program::Program& program) {
  return {least_memory(program, profile(), stack()),
          highest(device_memory(program, played(program), profile(), stack())).used};
}

}  // namespace

TEST_CASE("on one device nothing runs beside computations, so the bound is what is used") {
  const auto [least, found] = both(lowered_gpt(3, 4, {}));
  CHECK(least == found);
  CHECK(least > 1_GB + 2_MB);
}

TEST_CASE("a bound on activations grows with the micro-batches in flight, as they do") {
  strategies::Options options;
  options.pipeline = 4;
  options.schedule = "gpipe";
  const Both few = both(lowered_gpt(4, 4, options));
  const Both many = both(lowered_gpt(4, 12, options));
  CHECK(few.least <= few.found);
  CHECK(many.least <= many.found);
  // What a stage gets from the one before is received, so the bound does not have it.
  CHECK(many.least - few.least > 0.8 * (many.found - few.found));
}

TEST_CASE("where iterations overlap, the bound still is one, with every stage's own activations") {
  for (const char* schedule : {"pipedream", "pipedream-2bw"}) {
    strategies::Options options;
    options.pipeline = 3;
    options.schedule = schedule;
    const auto [least, found] = both(lowered_gpt(3, 4, options));
    INFO(schedule);
    CHECK(least <= found);
    CHECK(least > 1_GB + 2_MB + 0.5 * (found - 1_GB - 2_MB));
  }
}

TEST_CASE("no plan uses less than its bound") {
  always(
      [] {
        const RandomPlan random = random_plan(any_grids());
        const auto [least, found] = both(lowering::lower(*random.plan, {}));
        RC_ASSERT(least <= found);
        RC_ASSERT(least > 1_GB + 2_MB);
      },
      300);
}

}  // namespace stratagem::sim::least_memory_test

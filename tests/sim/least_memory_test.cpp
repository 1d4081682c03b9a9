// The bound against what the simulation finds, and where both are one.
#include "sim/least_memory.hpp"

#include "sim/device_memory.hpp"
#include "strategies/parallel/read_options.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sim/priced_by_name.hpp"
#include "tests/sim/random_plan.hpp"

namespace stratagem::sim::least_memory_test {

namespace {

/// What does not come from the program: context, workspace, and communicators of which each takes
/// so much for itself and for each neighbour in its rings.
constexpr Bytes context = 1_GB, workspace = 2_MB, communicator = 30_MB, peer = 5_MB;

cost::Profile profile() {
  cost::Profile profile;
  profile.memory.size.value = 1_TB;
  profile.memory.context.value = context;
  profile.memory.communicator = cost::CommunicatorConstants{};
  profile.memory.communicator->fixed.value = communicator;
  profile.memory.communicator->peer.value = peer;
  return profile;
}

cost::Stack stack() {
  cost::Stack stack = lowering::plain_stack();
  stack.memory.allocator = cost::MemoryFacts::Allocator::none;
  stack.memory.workspace = cost::Constant<Bytes>{.value = workspace, .source = "test"};
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
  CHECK(least > context + workspace);
}

TEST_CASE("on one device, with groups beside and a workspace from the allocator, too") {
  const program::Program program = lowered_gpt(3, 4, {});
  cost::Stack inside = stack();
  inside.memory.workspace_allocated = true;
  const std::vector<int> groups = {8, 2, 1};
  const Bytes least = least_memory(program, profile(), inside, groups);
  CHECK(least == both(program).least + 2 * communicator + 3 * peer);
  CHECK(least ==
        highest(device_memory(program, played(program), profile(), inside, {}, groups)).used);
}

TEST_CASE("what communication allocates or frees is left out, what computations do is not") {
  strategies::Options tensor;
  tensor.tensor = 2;
  const auto [least, found] = both(lowered_gpt(3, 4, tensor));
  CHECK(least <= found);
  CHECK(least >= context + workspace + communicator + peer);
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
    CHECK(least > context + workspace + 0.5 * (found - 1_GB - 2_MB));
  }
}

TEST_CASE("shards, split backward passes and chunks keep the bound") {
  const std::vector<std::string> strategies = {
      R"({"data": 2, "zero": {"stage": 1}})",
      R"({"data": 2, "zero": {"stage": 2}})",
      R"({"data": 2, "zero": {"stage": 3}, "recompute": "full"})",
      R"({"pipeline": 2, "schedule": "zb-h1"})",
      R"({"pipeline": 2, "schedule": "zb-v"})",
      R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})",
      R"({"tensor": 2, "data": 2, "sequence_parallel": true, "overlap_gradients": true})"};
  for (const std::string& text : strategies) {
    INFO(text);
    const auto [least, found] =
        both(lowered_gpt(4, 4, strategies::read_options(JsonReader::from_text(text, "test"))));
    CHECK(least <= found);
    CHECK(least > context + workspace);
  }
}

TEST_CASE("no plan uses less than its bound") {
  always(
      [] {
        const RandomPlan random = random_plan(any_grids());
        const auto [least, found] = both(lowering::lower(*random.plan, {}));
        RC_ASSERT(least <= found);
        RC_ASSERT(least > context + workspace);
      },
      300);
}

}  // namespace stratagem::sim::least_memory_test

// Buffers that live at the same time have places of their own, and no more than the program says.
#include "execute/placement.hpp"

#include <algorithm>
#include <map>

#include "execute/arena.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute::placement_test {
namespace {

constexpr model::GptConfig tiny_gpt{
    .layers = 2, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};

bool apart(const Placement::Buffer& one, const Placement::Buffer& other) {
  return one.offset + one.capacity <= other.offset || other.offset + other.capacity <= one.offset;
}

/// Follows allocations and frees, and returns the most that is alive at once.
std::size_t follow(const Placement& placement) {
  std::map<int, Placement::Buffer> alive;
  std::size_t bytes = 0, most = 0;
  for (std::size_t task = 0; task < placement.allocates.size(); ++task) {
    for (const auto& [slot, number] : placement.allocates[task]) {
      const Placement::Buffer& allocated = placement.buffers[number];
      CHECK(allocated.offset % 64 == 0);
      CHECK(allocated.offset + allocated.capacity <= placement.extent);
      for (const auto& [other, buffer] : alive) CHECK(apart(allocated, buffer));
      CHECK(alive.emplace(number, allocated).second);
      bytes += allocated.capacity;
    }
    most = std::max(most, bytes);
    for (const int number : placement.frees[task]) {
      if (alive.erase(number) > 0) bytes -= placement.buffers[number].capacity;
    }
  }
  CHECK(alive.empty());
  return most;
}

/// What is there for good: all that no task allocates. Buffers begin at multiples of 64.
std::size_t residents(const Placement& placement) {
  std::vector<bool> allocated(placement.buffers.size());
  for (const auto& of_task : placement.allocates) {
    for (const auto& [slot, number] : of_task) allocated[static_cast<std::size_t>(number)] = true;
  }
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < allocated.size(); ++i) {
    if (!allocated[i]) bytes += (placement.buffers[i].capacity + 63) / 64 * 64;
  }
  return bytes;
}

TEST_CASE("no two buffers that are alive at the same time overlap") {
  const model::Graph graph = model::gpt(tiny_gpt);
  for (const char* strategy :
       {"{}", R"({"recompute": "full"})", R"({"pipeline": 2, "schedule": "gpipe"})",
        R"({"pipeline": 2, "schedule": "zb-h1"})", R"({"zero": 3, "data": 2})"}) {
    INFO(strategy);
    const Planned plan = planned(graph, strategy, 4);
    for (int device = 0; device < static_cast<int>(plan.program.devices.size()); ++device) {
      const Placement placement =
          execute::placement(plan.program, plan.plan.graph(), device, sizes_of<double>());
      const std::size_t most = follow(placement);
      CHECK(most > 0);
      const std::size_t slots = placement.extent - residents(placement);
      CHECK(slots >= most);
      CHECK(slots < 2 * most);  // gaps cost something, but not another arena
    }
  }
}

/// Rounds that repeat, from the first one on, in which what was not allocated yet is not freed.
TEST_CASE("buffers of iterations that overlap do not") {
  const model::Graph graph = model::gpt(tiny_gpt);
  for (const int micro_batches : {1, 4}) {
    const Planned plan =
        planned(graph, R"({"pipeline": 2, "schedule": "pipedream"})", micro_batches);
    REQUIRE(plan.program.lag > 0);
    const Placement once =
        execute::placement(plan.program, plan.plan.graph(), 0, sizes_of<double>());
    REQUIRE(once.rounds == plan.program.lag + 1);
    std::map<int, Placement::Buffer> alive;
    std::size_t longest = 0;
    for (std::size_t task = 0; task < 3 * once.allocates.size(); ++task) {
      const std::size_t at = task % once.allocates.size();
      for (const auto& [slot, number] : once.allocates[at]) {
        const Placement::Buffer& allocated = once.buffers[number];
        CHECK(allocated.offset + allocated.capacity <= once.extent);
        for (const auto& [other, buffer] : alive) CHECK(apart(allocated, buffer));
        CHECK(alive.emplace(number, allocated).second);
      }
      for (const int number : once.frees[at]) alive.erase(number);
      const std::size_t tasks = once.allocates.size() / once.rounds;
      if (task % tasks + 1 == tasks) longest = std::max(longest, alive.size());
    }
    CHECK(longest > 0);  // some outlive their round
  }
}

TEST_CASE("an arena counts what its buffers hold until they are freed") {
  HostEngine<float> engine;
  Arena arena({.buffers = {{0, 128}, {128, 64}},
               .allocates = {},
               .frees = {},
               .residents = {},
               .extent = 192},
              engine);
  std::byte* first = arena.hold(0, 100);
  CHECK(arena.hold(1, 64) == first + 128);
  CHECK(arena.hold(0, 80) == first);  // it held more before, and does not shrink
  CHECK(arena.live() == 164);
  arena.release(0);
  CHECK(arena.live() == 64);
  CHECK(arena.peak() == 164);
  arena.begin_peak();
  CHECK(arena.peak() == 64);
  CHECK_THROWS_AS(arena.hold(1, 65), BrokenPromise);
}

TEST_CASE("ranks that train hold what fits their placement, in every iteration as much") {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, R"({"pipeline": 2, "schedule": "1f1b"})", 4);
  kernels::run_ranks(2, [&](kernels::Communicator& world) {
    Interpreter<double> rank(plan.program, plan.plan.graph(), {.micro_batches = 4}, world);
    rank.iterate();
    rank.iterate();
    const std::size_t second = rank.arena().peak();
    CHECK(second > 0);
    CHECK(second <= rank.arena().placement().extent);
    const std::size_t between = rank.arena().live();
    rank.iterate();
    CHECK(rank.arena().peak() == second);
    CHECK(rank.arena().live() == between);  // residents alone
  });
}

}  // namespace
}  // namespace stratagem::execute::placement_test

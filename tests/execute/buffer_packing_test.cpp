// Buffers that live at the same time have places of their own, and no more than the program says.
#include "execute/buffer_packing.hpp"

#include <algorithm>
#include <map>

#include "execute/arena.hpp"
#include "program/buffers.hpp"
#include "tests/catch.hpp"
#include "tests/execute/trained.hpp"

namespace stratagem::execute::buffer_packing_test {
namespace {

constexpr model::GptConfig tiny_gpt{
    .layers = 2, .hidden = 16, .heads = 4, .sequence = 8, .vocabulary = 24, .batch = 4};

bool apart(const BufferPacking::Buffer& one, const BufferPacking::Buffer& other) {
  return one.offset + one.capacity <= other.offset || other.offset + other.capacity <= one.offset;
}

/// The buffers of one device, and what of them is alive while it runs calls.
struct Followed {
  const program::Program& program;
  const program::Sequence& sequence;
  program::Buffers buffers;
  BufferPacking packing;
  std::map<int, BufferPacking::Buffer> alive = {};  ///< by number in the packing
  std::size_t bytes = 0, most = 0;

  Followed(const Planned& plan, int device)
      : program(plan.program),
        sequence(program.sequences[program.devices[device].sequence]),
        buffers(program, sequence),
        packing(execute::pack_buffers(program, plan.plan.graph(), device, sizes_of<double>())) {}

  [[nodiscard]] int place(int buffer, int iteration) const {
    return packing.buffer_of[iteration % packing.buffer_of.size()][buffer];
  }

  /// Those of the calls of a round whose iteration has begun.
  void run_round(int round) {
    for (int c = 0; c < static_cast<int>(sequence.calls.size()); ++c) {
      const int iteration = round - sequence.calls[c].lag;
      const auto tasks = program.blocks[sequence.calls[c].block].tasks.size();
      for (int t = 0; iteration >= 0 && t < static_cast<int>(tasks); ++t) {
        buffers.each_allocated({c, t}, [&](int b) { allocate(place(b, iteration)); });
        most = std::max(most, bytes);
        buffers.each_freed({c, t}, [&](int b) { free(place(b, iteration)); });
      }
    }
  }

  void allocate(int number) {
    if (number < 0) return;
    const BufferPacking::Buffer& allocated = packing.buffers[number];
    CHECK(allocated.offset % 64 == 0);
    CHECK(allocated.offset + allocated.capacity <= packing.extent);
    for (const auto& [other, buffer] : alive) CHECK(apart(allocated, buffer));
    CHECK(alive.emplace(number, allocated).second);
    bytes += allocated.capacity;
  }
  void free(int number) {
    if (alive.erase(number) > 0) bytes -= packing.buffers[number].capacity;
  }

  /// What is there for good: all that no task allocates. Buffers begin at multiples of 64.
  [[nodiscard]] std::size_t residents() const {
    std::vector<bool> allocated(packing.buffers.size());
    for (int b = 0; b < buffers.count(); ++b) {
      if (buffers[b].born && place(b, 0) >= 0) allocated[place(b, 0)] = true;
    }
    std::size_t sum = 0;
    for (std::size_t i = 0; i < allocated.size(); ++i) {
      if (!allocated[i]) sum += (packing.buffers[i].capacity + 63) / 64 * 64;
    }
    return sum;
  }
};

TEST_CASE("no two buffers that are alive at the same time overlap") {
  const model::Graph graph = model::gpt(tiny_gpt);
  for (const char* strategy :
       {"{}", R"({"recompute": "full"})", R"({"pipeline": 2, "schedule": "gpipe"})",
        R"({"pipeline": 2, "schedule": "zb-h1"})", R"({"zero": 3, "data": 2})"}) {
    INFO(strategy);
    const Planned plan = planned(graph, strategy, 4);
    for (int device = 0; device < static_cast<int>(plan.program.devices.size()); ++device) {
      Followed followed(plan, device);
      followed.run_round(0);
      CHECK(followed.alive.empty());
      const std::size_t most = followed.most;
      CHECK(most > 0);
      const std::size_t slots = followed.packing.extent - followed.residents();
      CHECK(slots >= most);
      CHECK(slots < 2 * most);  // gaps cost something, but not another arena
    }
  }
}

TEST_CASE("buffers of iterations that overlap do not") {
  const model::Graph graph = model::gpt(tiny_gpt);
  for (const int micro_batches : {1, 4}) {
    const Planned plan =
        planned(graph, R"({"pipeline": 2, "schedule": "pipedream"})", micro_batches);
    const int lag = plan.program.lag;
    REQUIRE(lag > 0);
    Followed followed(plan, 0);
    REQUIRE(static_cast<int>(followed.packing.buffer_of.size()) == lag + 1);
    std::size_t longest = 0;
    for (int round = 0; round < 3 * (lag + 1); ++round) {
      followed.run_round(round);
      longest = std::max(longest, followed.alive.size());
    }
    CHECK(longest > 0);  // some outlive their round
  }
}

TEST_CASE("an arena counts what its buffers hold until they are freed") {
  HostEngine<float> engine;
  Arena arena({.buffers = {{0, 128}, {128, 64}}, .buffer_of = {}, .extent = 192}, engine);
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

TEST_CASE("ranks that train hold what fits their packing, in every iteration as much") {
  const model::Graph graph = model::gpt(tiny_gpt);
  const Planned plan = planned(graph, R"({"pipeline": 2, "schedule": "1f1b"})", 4);
  kernels::run_ranks(2, [&](kernels::Communicator& world) {
    Interpreter<double> rank(plan.program, plan.plan.graph(), {.micro_batches = 4}, world);
    rank.iterate();
    rank.iterate();
    const std::size_t second = rank.arena().peak();
    CHECK(second > 0);
    CHECK(second <= rank.arena().packing().extent);
    const std::size_t between = rank.arena().live();
    rank.iterate();
    CHECK(rank.arena().peak() == second);
    CHECK(rank.arena().live() == between);  // residents alone
  });
}

}  // namespace
}  // namespace stratagem::execute::buffer_packing_test

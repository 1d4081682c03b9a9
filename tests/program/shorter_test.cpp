// A program with fewer turns is the program of fewer micro-batches, and deadlocks are found in it.
#include "program/shorter.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "program/check/check.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/sanitized.hpp"

namespace stratagem::program::shorter_test {
namespace {

const std::vector<std::string> schedules = {"1f1b",   "interleaved",  "zb-h1",   "zb-h2",
                                            "zb-v",   "v-half",       "chimera", "dualpipe",
                                            "hanayo", "combined-1f1b"};
const std::vector<std::string> parts = {"",
                                        R"(, "tensor": 2, "sequence_parallel": true)",
                                        R"(, "data": 2, "zero": {"stage": 3, "prefetch": 2})",
                                        R"(, "data": 2, "zero": 1, "overlap_gradients": true)",
                                        R"(, "recompute": "full")",
                                        R"(, "swap": 2)",
                                        R"(, "context": 2)",
                                        R"(, "offload": "optimizer")",
                                        R"(, "layers_per_stage": [1, 3, 2, 2])"};

model::Graph graph_of_layers() {
  model::GptConfig config = lowering::small_gpt;
  config.layers = 8;
  config.tied = false;
  config.batch = 4;
  return model::gpt(config);
}

/// Of every schedule with every part that goes with it, on four stages.
template <typename Act>
void each_program(const model::Graph& graph, int micro_batches, const Act& act) {
  std::size_t number = 0;
  for (const std::string& schedule : schedules) {
    for (const std::string& part : parts) {
      if (number++ % stride(7) != 0) continue;
      const std::string strategy =
          R"({"pipeline": 4, "schedule": ")" + schedule + "\"" + part + "}";
      INFO(strategy);
      std::optional<Program> program;
      try {
        program = lowering::lowered(graph, strategy, micro_batches);
      } catch (const InputError&) {  // what does not go together
        continue;
      }
      act(strategy, *program);
    }
  }
}

Program with(const Program& program, std::vector<Sequence> sequences) {
  Program result = program;
  result.sequences = std::move(sequences);
  return result;
}

bool can_run(const Program& program) {
  try {
    check(program);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// Lets a host wait in the long loop of a sequence, before a call, for one some calls before.
void add_host_wait(Program& program, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  Calls& calls = program.sequences[below(program.sequences.size())].calls;
  const auto longest = std::ranges::max_element(
      calls.loops(), {}, [](const Loop& loop) { return loop.turns * loop.calls; });
  if (longest == calls.loops().end()) return;
  const int stored = longest->first + below(longest->calls);
  const int of_call = calls.number({stored, 0}) - 1 - below(12);
  if (of_call < 0) return;
  const std::size_t tasks = program.blocks[calls.body(of_call).block].tasks.size();
  if (tasks == 0) return;
  std::vector<HostWait>& waits = calls.stored()[stored].host_waits;
  waits.push_back({.of_call = of_call, .of_task = below(tasks)});
  std::ranges::sort(waits);
}

}  // namespace

TEST_CASE("a shorter program is what the plan for fewer micro-batches is lowered to") {
  const model::Graph graph = graph_of_layers();
  int shorter_ones = 0;
  each_program(graph, 48, [&](const std::string& strategy, const Program& program) {
    const std::optional<Shorter> less = shorter(program, 8);
    // With two directions each numbers its own half of the micro-batches.
    const bool halves = strategy.find("chimera") != std::string::npos ||
                        strategy.find("dualpipe") != std::string::npos;
    if (!less || halves) return;
    ++shorter_ones;
    const Program fewer = lowering::lowered(graph, strategy, 48 - less->count);
    CHECK(to_text(with(program, less->sequences), graph) == to_text(fewer, graph));
  });
  CHECK(shorter_ones >= 30 / static_cast<int>(stride(7)));
}

TEST_CASE("on many stages the last calls are for micro-batches of the first") {
  model::GptConfig config = lowering::small_gpt;
  config.layers = 16;
  config.tied = false;
  const model::Graph graph = model::gpt(config);
  for (const std::string more : {"", R"(, "swap": 1)", R"(, "recompute": "full")"}) {
    for (const std::string schedule : {"1f1b", "zb-h1"}) {
      const std::string strategy =
          R"({"pipeline": 16, "schedule": ")" + schedule + "\"" + more + "}";
      INFO(strategy);
      const Program program = lowering::lowered(graph, strategy, 64);
      const std::optional<Shorter> less = shorter(program, 4);
      REQUIRE(less);
      CHECK(less->count >= 30);
      const Program fewer = lowering::lowered(graph, strategy, 64 - less->count);
      CHECK(to_text(with(program, less->sequences), graph) == to_text(fewer, graph));
    }
  }
}

TEST_CASE("a program keeps as many micro-batches as it is told, and is shorter by a quarter") {
  const model::Graph graph = graph_of_layers();
  const std::string strategy = R"({"pipeline": 4, "schedule": "1f1b"})";
  const Program program = lowering::lowered(graph, strategy, 48);
  for (const int spare : {4, 10, 20, 30}) {
    const std::optional<Shorter> less = shorter(program, spare);
    REQUIRE(less);
    CHECK(less->count >= 12);
    for (std::size_t s = 0; s < less->sequences.size(); ++s) {
      const auto& [loop, turns] = less->long_loops[s];
      CHECK(turns == less->count);
      CHECK(less->sequences[s].calls.loops()[loop].turns >= spare);
    }
  }
  CHECK_FALSE(shorter(program, 40));
  CHECK_FALSE(shorter(lowering::lowered(graph, strategy, 5), 4));
  CHECK_FALSE(shorter(lowering::lowered(graph, R"({"data": 2})", 1), 4));
}

TEST_CASE("a program keeps as many turns as it is told, whose turns are of several micro-batches") {
  const model::Graph graph = graph_of_layers();
  const std::string strategy = R"({"pipeline": 2, "schedule": "interleaved", "chunks": 2})";
  const Program program = lowering::lowered(graph, strategy, 48);
  for (const int kept : {2, 3, 5, 8}) {
    CAPTURE(kept);
    const std::optional<Shorter> less = shorter(program, 4, kept);
    REQUIRE(less);
    for (std::size_t s = 0; s < less->sequences.size(); ++s) {
      const Loop& loop = less->sequences[s].calls.loops()[less->long_loops[s].loop];
      CHECK(loop.step == 2);
      CHECK(loop.turns >= kept);
    }
  }
  CHECK(shorter(program, 4, 8)->count < shorter(program, 4, 2)->count);
}

TEST_CASE("loops that keep buffers, and iterations that overlap, are not made shorter") {
  const model::Graph graph = graph_of_layers();
  for (const std::string schedule : {"gpipe", "pipedream"}) {
    const std::string strategy = R"({"pipeline": 4, "schedule": ")" + schedule + "\"}";
    CHECK_FALSE(shorter(lowering::lowered(graph, strategy, 48), 8));
  }
}

TEST_CASE("what deadlocks with loops deadlocks without, where hosts wait at random") {
  const model::Graph graph = graph_of_layers();
  std::mt19937 random(25);
  int running = 0, deadlocks = 0;
  each_program(graph, 48, [&](const std::string&, const Program& program) {
    for (int i = 0; i < 4; ++i) {
      Program waiting = program;
      for (int waits = 0; waits < 4; ++waits) add_host_wait(waiting, random);
      std::vector<Sequence> spelled_out;
      for (const Sequence& sequence : waiting.sequences) spelled_out.push_back(unrolled(sequence));
      const bool runs = can_run(with(waiting, std::move(spelled_out)));
      CHECK(can_run(waiting) == runs);
      ++(runs ? running : deadlocks);
    }
  });
  CHECK(running >= 50 / static_cast<int>(stride(7)));
  CHECK(deadlocks >= 30 / static_cast<int>(stride(7)));
}

}  // namespace stratagem::program::shorter_test

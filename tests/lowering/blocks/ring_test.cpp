// Attention in a ring beside all else that a plan may say: what it leaves can run, and every buffer
// lives as long as somebody needs it.
#include <string>

#include "model/zoo/llama.hpp"
#include "program/check/check.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/replay.hpp"

namespace stratagem::lowering::ring_test {
namespace {

model::Graph fused_llama() {
  return model::llama({.layers = 4,
                       .hidden = 48,
                       .heads = 8,
                       .kv_heads = 4,
                       .intermediate = 104,
                       .sequence = 24,
                       .vocabulary = 112,
                       .batch = 12,
                       .fused = {.loss = true}});
}

}  // namespace

TEST_CASE(
    "whatever runs beside rings, tasks wait for what they read, and no buffer outlives them") {
  const model::Graph graph = fused_llama();
  for (const std::string more :
       {"", R"(, "tensor": 2)", R"(, "tensor": 2, "sequence_parallel": true, "pipeline": 2)",
        R"(, "data": 2, "zero": 3)", R"(, "data": 2, "overlap_gradients": true, "bucket": "8 KiB")",
        R"(, "recompute": "full")", R"(, "recompute": {"every": 2})",
        R"(, "recompute": "selective")",
        R"(, "recompute": {"operators": ["layers.*.attention.*"], "results": "dropped"})",
        R"(, "ulysses": 2)", R"(, "swap": 2)", R"(, "coshard": 2)",
        R"(, "pipeline": 2, "schedule": "zb-h1")", R"(, "pipeline": 2, "schedule": "dualpipe")",
        R"(, "pipeline": 2, "schedule": "combined-1f1b")",
        R"(, "pipeline": 4, "schedule": "bpipe")"}) {
    for (const int ranks : {2, 3}) {
      const std::string strategy = "{\"context\": " + std::to_string(ranks) +
                                   ", \"context_exchange\": \"ring\"" + more + "}";
      INFO(strategy);
      const strategies::Plan plan = plan_of(graph, strategy, 4);
      const program::Program program = lower(plan, plain_stack());
      CHECK_NOTHROW(program::check(program));
      const auto has = [&](const char* schedule) { return more.find(schedule) != more.npos; };
      // The replay knows neither W cells nor cells that run together.
      if (!has("zb-h1") && !has("dualpipe") && !has("combined-1f1b"))
        check_program(plan.graph(), program);
    }
  }
}

TEST_CASE("a part waits for its message, and a message for what it passes on") {
  const model::Graph graph = fused_llama();
  const program::Program program = lowered(graph, R"({"context": 3, "context_exchange": "ring"})");
  for (const placement::CellPass pass :
       {placement::CellPass::forward, placement::CellPass::backward}) {
    const program::Block& block = block_of(program, 1, pass);
    const auto place = [&](const std::string& name) {
      const auto found = std::ranges::find(block.tasks, name, &program::Task::name);
      REQUIRE(found != block.tasks.end());
      return static_cast<int>(found - block.tasks.begin());
    };
    const bool forward = pass == placement::CellPass::forward;
    const std::string core = forward ? "attention.core" : "attention.core.B";
    const auto waits = [&](const std::string& name) {
      return block.tasks[place(core + ", " + name)].waits;
    };
    if (forward) {
      CHECK(waits("message 1 of 2") == std::vector{place(core + ", keys and values")});
      CHECK(waits("part 1 of 3").empty());
      CHECK(waits("part 3 of 3") == std::vector{place(core + ", message 2 of 2")});
    } else {
      CHECK(waits("message 2 of 3") == std::vector{place(core + ", sum of parts up to 1")});
      CHECK(waits("sum of parts up to 3") == std::vector{place(core + ", message 3 of 3")});
    }
  }
}

TEST_CASE("keys and values that a ring does not bring, or not alone, are refused") {
  const model::Graph graph = fused_llama();
  const std::string text = refusal([&] {
    static_cast<void>(lowered(graph, R"({"context": 2, "context_exchange": "ring", "tensor": 2,
                                         "operators": {"layers.*.attention.core": ""}})"));
  });
  CHECK_THAT(text, ContainsSubstring("/strategy/context_exchange: expected keys and values of"));
  // Keys are whole already: nothing passes.
  strategies::Plan plan(graph);
  const placement::Axis ranks{.name = "context", .size = 2, .stride = 1};
  for (const model::OpId op : plan.operators()) {
    const bool core = model::is_fused_attention(graph.operators[op]);
    plan.assign(plan.trans(op, {.dim = core ? "s" : "", .parts = 2}), ranks);
    if (core) plan.run_in_ring(op, "context");
  }
  CHECK_THAT(refusal([&] { lower(plan, plain_stack()); }),
             ContainsSubstring("that are divided along the ring"));
}

TEST_CASE("rings want a stage on one grid") {
  const model::Graph graph = fused_llama();
  strategies::Plan plan = plan_of(graph, R"({"context": 2, "context_exchange": "ring"})", 1);
  CHECK(refusal([&] { lower(plan, plain_stack()); }).empty());
  plan.assign(graph.segments[1].forward.front(), {1, 0});
  CHECK_THAT(refusal([&] { lower(plan, plain_stack()); }),
             ContainsSubstring("/strategy/context_exchange: expected stages on one grid in equal "
                               "parts where attention runs in a ring"));
}

}  // namespace stratagem::lowering::ring_test

// Attention with caches against closed forms: what it computes, what it moves, where caches lie.
#include "model/freeze.hpp"
#include "model/zoo/gpt.hpp"
#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::lowering::caches_test {

using placement::CellPass;
using program::Category;
using program::Program;

namespace {

constexpr double batch = 12, heads = 8, groups = 4, width = 6, tokens = 2, before = 17, room = 23;
constexpr double layers = 4;

model::LlamaConfig small_llama() {
  model::LlamaConfig config{.layers = 4,
                            .hidden = 48,
                            .heads = 8,
                            .kv_heads = 4,
                            .intermediate = 80,
                            .sequence = 2,
                            .vocabulary = 112,
                            .batch = 12};
  config.fused.attention = true;
  config.variant.task.cache = {.room = 23, .tokens = 17};
  return config;
}

model::Graph forward_only(const model::Graph& graph) {
  return model::freeze(graph, [](const model::Tensor&) { return true; });
}

const cost::Kernel& core_of(const Program& program, int segment) {
  for (const program::Task& task : block_of(program, segment, CellPass::forward).tasks)
    if (task.name == "attention.core") return std::get<cost::Kernel>(task.work);
  throw std::out_of_range("no core");
}

}  // namespace

TEST_CASE("tokens see the cache and half of themselves, and move each row once") {
  const Program program = lowered(forward_only(model::llama(small_llama())), "{}");
  const cost::Kernel& core = core_of(program, 1);
  CHECK(core.flops.value == 4 * batch * heads * width * tokens * (before + tokens / 2));
  CHECK(core.m == tokens);
  CHECK(core.n == before + tokens);
  // Queries and results; new keys and values, read and written; those before, read; sums in fp32.
  const double rows = 2 * heads * tokens + 2 * groups * tokens + 2 * groups * (before + tokens);
  CHECK(core.traffic.value == batch * (2 * width * rows + 4 * heads * tokens));
  // For model FLOPs all pairs count, as everywhere.
  const model::Graph graph = forward_only(model::llama(small_llama()));
  const model::Operator& op = graph.operators[operator_named(graph, "layers.0.attention.core")];
  CHECK(model::flops(graph, op).value == 4 * batch * heads * width * tokens * (before + tokens));
}

TEST_CASE("each rank has the caches of its heads, samples and layers, one a micro-batch") {
  const double all = 2 * layers * batch * room * groups * width * 2;
  struct Case {
    std::string strategy;
    int micro_batches;
    double ranks;
  };
  for (const auto& [strategy, micro_batches, ranks] :
       {Case{"{}", 1, 1}, Case{"{}", 3, 1}, Case{R"({"data": 3})", 2, 3},
        Case{R"({"tensor": 4})", 1, 4}, Case{R"({"tensor": 2, "data": 2})", 2, 4},
        Case{R"({"pipeline": 2, "schedule": "gpipe"})", 4, 2},
        Case{R"({"pipeline": 2, "tensor": 2})", 4, 4},
        Case{R"({"operators": {"*.residual": "h"}, "tensor": 2})", 2, 2},
        Case{R"({"data": 2, "zero": 3})", 2, 2}}) {
    INFO(strategy);
    const Program program =
        lowered(forward_only(model::llama(small_llama())), strategy, micro_batches);
    for (const program::Sequence& sequence : program.sequences)
      CHECK(resident(sequence, Category::caches).value == micro_batches * all / ranks);
  }
}

TEST_CASE("with a cache there are forward passes alone, and a head of one token") {
  for (const bool learned : {false, true}) {
    model::GptConfig gpt = small_gpt;
    gpt.sequence = 2;
    gpt.dropout = false;
    gpt.fused_attention = true;
    gpt.variant.task.cache = {.room = 23, .tokens = 17};
    const model::Graph graph =
        learned ? forward_only(model::gpt(gpt)) : forward_only(model::llama(small_llama()));
    CHECK(!model::trains_any(graph));
    for (const model::Segment& segment : graph.segments) {
      CHECK(segment.backward.empty());
      CHECK(segment.optimizer.empty());
    }
    const model::Operator& product = graph.operators[operator_named(graph, "head.logits")];
    CHECK(graph.tensors[product.outputs[0]].shape == std::vector<std::int64_t>{12, 112});
    if (!learned) continue;
    const model::Operator& lookup =
        graph.operators[operator_named(graph, "embedding.lookup_positions")];
    CHECK(graph.tensors[lookup.inputs[1]].shape == std::vector<std::int64_t>{23, 48});
  }
}

TEST_CASE("of all tokens the head's kernels read the last one alone") {
  model::LlamaConfig config = small_llama();
  config.sequence = 5;
  const Program program = lowered(forward_only(model::llama(config)), "{}");
  for (const program::Task& task : block_of(program, 5, CellPass::forward).tasks) {
    if (task.name == "last_token")
      CHECK(std::get<cost::Kernel>(task.work).traffic.value == 2 * batch * 48 * 2);
  }
}

TEST_CASE("logits of one token are gathered over the ranks that divide the words") {
  const Program program = lowered(forward_only(model::llama(small_llama())), R"({"tensor": 2})");
  const auto& last = block_of(program, 5, CellPass::forward);
  const std::vector<program::Collective> all = collectives(last);
  REQUIRE(all.size() == 1);
  CHECK(all[0].kind == cost::CollectiveKind::all_gather);
  CHECK(all[0].payload.value == batch * 112 * 2);
}

}  // namespace stratagem::lowering::caches_test

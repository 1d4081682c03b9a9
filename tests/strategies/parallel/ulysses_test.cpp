// DeepSpeed-Ulysses: what a layer exchanges, among whom, and what a rank keeps.
#include <numeric>

#include "model/zoo/llama.hpp"
#include "model/zoo/t5.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::ulysses_test {

using lowering::block_of;
using lowering::collectives;
using lowering::lowered;
using lowering::small_gpt;
using placement::CellPass;

namespace {

constexpr Bytes states = 12 * 20 * 48 * 2_B;  // b*s*h in fp16

/// Payloads of all-to-alls among the ranks with these numbers; other collectives there fail.
std::vector<Bytes> exchanged(const program::Program& program, CellPass pass,
                             const std::vector<int>& ranks) {
  std::vector<Bytes> payloads;
  for (const program::Collective& one : collectives(block_of(program, 1, pass))) {
    if (program.communicators[program.devices[0].groups[one.group]].ranks != ranks) continue;
    CHECK(one.kind == cost::CollectiveKind::all_to_all);
    payloads.push_back(one.payload);
  }
  std::ranges::sort(payloads);
  return payloads;
}

}  // namespace

TEST_CASE("ulysses exchanges queries, keys and values once, and attention's result once") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int p : {2, 4}) {
    const program::Program program = lowered(graph, "{\"ulysses\": " + std::to_string(p) + "}");
    CHECK(program.devices.size() == static_cast<std::size_t>(p));
    for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
      std::vector<int> all(static_cast<std::size_t>(p));
      std::iota(all.begin(), all.end(), 0);
      CHECK(exchanged(program, pass, all) == std::vector<Bytes>(4, states / p));
      CHECK(collectives(block_of(program, 1, pass)).size() == 4);
    }
  }
}

TEST_CASE("queries that share keys exchange a share of keys and values") {
  const model::Graph graph = model::llama({.layers = 4,
                                           .hidden = 48,
                                           .heads = 8,
                                           .kv_heads = 4,
                                           .intermediate = 168,
                                           .sequence = 20,
                                           .vocabulary = 112,
                                           .batch = 12});
  const program::Program program = lowered(graph, R"({"ulysses": 2})");
  // 8 heads of queries, 4 of keys and of values.
  CHECK(exchanged(program, CellPass::forward, {0, 1}) ==
        std::vector<Bytes>{states / 4, states / 4, states / 2, states / 2});
}

TEST_CASE("fused attention exchanges its result once more, for its backward pass") {
  model::GptConfig config = small_gpt;
  config.fused_attention = true;
  const model::Graph graph = model::gpt(config);
  const program::Program program = lowered(graph, R"({"ulysses": 2})");
  CHECK(exchanged(program, CellPass::forward, {0, 1}) == std::vector<Bytes>(4, states / 2));
  CHECK(exchanged(program, CellPass::backward, {0, 1}) == std::vector<Bytes>(5, states / 2));
}

TEST_CASE("what has heads and no tokens of its own is where its heads are") {
  model::GptConfig config = small_gpt;
  config.prefix = 4;
  const model::Graph prefix = model::gpt(config);
  CHECK(exchanged(lowered(prefix, R"({"ulysses": 2})"), CellPass::forward, {0, 1}) ==
        std::vector<Bytes>(4, states / 2));
  // Biases by distance, of 8 heads: no more is exchanged with them than without.
  const auto of_t5 = [](std::int64_t buckets) {
    const model::Graph graph = model::t5({.layers = 2,
                                          .decoder_layers = 2,
                                          .hidden = 48,
                                          .heads = 8,
                                          .intermediate = 96,
                                          .sequence = 20,
                                          .decoder_sequence = 20,
                                          .vocabulary = 112,
                                          .batch = 12,
                                          .bias_buckets = buckets});
    return exchanged(lowered(graph, R"({"ulysses": 2})"), CellPass::forward, {0, 1});
  };
  CHECK(of_t5(32) == of_t5(0));
}

TEST_CASE("each tensor rank's heads are exchanged among ranks that have the same of them") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const std::string more : {"", R"(, "sequence_parallel": true)"}) {
    const program::Program program = lowered(graph, R"({"tensor": 2, "ulysses": 2)" + more + "}");
    for (const CellPass pass : {CellPass::forward, CellPass::backward})
      CHECK(exchanged(program, pass, {0, 2}) == std::vector<Bytes>(4, states / 4));
    // As many tensor-parallel collectives as without these ranks, of half of the tokens.
    const program::Program alone = lowered(graph, R"({"tensor": 2)" + more + "}");
    const auto before = collectives(block_of(alone, 1, CellPass::forward));
    CHECK(collectives(block_of(program, 1, CellPass::forward)).size() == before.size() + 4);
  }
}

TEST_CASE("keys and values are gathered among context ranks where there are both") {
  const model::Graph graph = model::gpt(small_gpt);
  const program::Program program = lowered(graph, R"({"ulysses": 2, "context": 2})");
  CHECK(program.devices.size() == 4);
  CHECK(exchanged(program, CellPass::forward, {0, 1}) == std::vector<Bytes>(4, states / 4));
  int gathers = 0;
  for (const program::Collective& one : collectives(block_of(program, 1, CellPass::forward))) {
    if (one.kind != cost::CollectiveKind::all_gather) continue;
    CHECK(program.communicators[program.devices[0].groups[one.group]].ranks ==
          std::vector<int>{0, 2});
    CHECK(one.payload == states / 2);  // of half of the heads
    ++gathers;
  }
  CHECK(gathers == 2);
}

TEST_CASE("ulysses is refused where heads do not divide, and for products of experts") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK_THAT(lowering::refusal([&] { lowered(graph, R"({"ulysses": 5})"); }),
             StartsWith("test.json: /strategy/ulysses: expected dimension heads of "));
  model::GptConfig config = small_gpt;
  config.experts = {.count = 4, .per_token = 2};
  const model::Graph experts = model::gpt(config);
  CHECK_THAT(lowering::refusal([&] { lowered(experts, R"({"ulysses": 2})"); }),
             StartsWith("test.json: /strategy/ulysses: expected 1, since such ranks do not divide "
                        "matrix products"));
}

}  // namespace stratagem::strategies::ulysses_test

// Sequence parallelism beside tensor parallelism, against Korthikanti et al., arXiv:2205.05198.
#include <map>
#include <set>

#include "model/zoo/evoformer.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::sequence_parallel_test {

using lowering::block_of;
using lowering::lowered;
using lowering::small_gpt;
using placement::CellPass;
using program::Category;
using program::Program;

namespace {

constexpr double batch = 12, sequence_length = 20, hidden = 48, layers = 4;
constexpr Bytes activation = batch * sequence_length * hidden * 2_B;  // b*s*h in fp16

std::string strategy(int tensor, const std::string& more = "") {
  return "{\"tensor\": " + std::to_string(tensor) + ", \"sequence_parallel\": true" + more + "}";
}

using Kinds = std::multiset<cost::CollectiveKind>;
constexpr auto gather = cost::CollectiveKind::all_gather;
constexpr auto scatter = cost::CollectiveKind::reduce_scatter;

/// Kinds of the collectives of a block, all of b*s*h.
Kinds kinds(const program::Block& block) {
  INFO(block.name);
  Kinds result;
  for (const program::Collective& one : lowering::collectives(block)) {
    CHECK(one.payload == activation);
    result.insert(one.kind);
  }
  return result;
}

model::GptConfig shape(std::int64_t hidden_size, std::int64_t heads, std::int64_t micro_batch) {
  return {.layers = 2,
          .hidden = hidden_size,
          .heads = heads,
          .sequence = 2048,
          .vocabulary = 51200,
          .batch = micro_batch};
}

Bytes left_by_layer(const model::GptConfig& config, const std::string& text, Category category) {
  const model::Graph graph = model::gpt(config);
  return lowering::left_by(block_of(lowered(graph, text), 1, CellPass::forward), category);
}

}  // namespace

TEST_CASE("every all-reduce of a layer becomes an all-gather and a reduce-scatter of b*s*h") {
  // Section 4.2.2: g and its conjugate. Backward, the divided inputs of QKV and fc1 are gathered
  // once more for their weight gradients.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int t : {2, 4}) {
    const Program program = lowered(graph, strategy(t));
    for (int layer = 1; layer <= 4; ++layer) {
      CHECK(kinds(block_of(program, layer, CellPass::forward)) ==
            Kinds{gather, gather, scatter, scatter});
      CHECK(kinds(block_of(program, layer, CellPass::backward)) ==
            Kinds{gather, gather, gather, gather, scatter, scatter});
    }
  }
}

TEST_CASE("the lookup's all-reduce becomes a reduce-scatter, and a gather in the backward pass") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program = lowered(graph, strategy(4));
  CHECK(kinds(block_of(program, 0, CellPass::forward)) == Kinds{scatter});
  CHECK(kinds(block_of(program, 0, CellPass::backward)) == Kinds{gather});
}

TEST_CASE("a layer keeps sbh/t (34 + 5as/h) bytes") {
  // Table 2 with section 5's sizes: GPT-3 at t = 8 keeps 0.33 GiB.
  CHECK(left_by_layer(shape(12288, 96, 1), strategy(8), Category::activations) ==
        Bytes{358'612'992});
  for (const auto& [h, a, b] : std::vector<std::tuple<int, int, int>>{
           {6144, 64, 4}, {12288, 96, 1}, {20480, 128, 1}, {25600, 160, 1}}) {
    const model::GptConfig config = shape(h, a, b);
    for (const int t : {2, 4, 8}) {
      const double sbh = 2048.0 * b * h;
      CHECK(close(left_by_layer(config, strategy(t), Category::activations),
                  Bytes{sbh / t * (34 + 5.0 * a * 2048 / h)}, 1e-14));
    }
  }
}

TEST_CASE("norms' statistics and checkpoints are divided too") {
  const auto tokens = batch * sequence_length;
  CHECK(left_by_layer(small_gpt, strategy(4), Category::statistics) == tokens / 4 * 2 * 2 * 4_B);
  CHECK(left_by_layer(small_gpt, strategy(4, R"(, "recompute": "full")"), Category::checkpoints) ==
        activation / 4);
}

TEST_CASE("gradients of norms and row biases are summed over the tensor ranks") {
  // Per layer two norms of 2h and two row biases of h; the final norm.
  const model::Graph graph = model::gpt(small_gpt);
  for (const int data : {1, 3}) {
    const Program program = lowered(graph, strategy(4, R"(, "data": )" + std::to_string(data)));
    std::map<std::size_t, Bytes> by_ranks;
    for (const program::Collective& one :
         lowering::collectives(program, 0, program::Stream::gradient_communication)) {
      const int communicator = program.devices[0].groups[one.group];
      by_ranks[program.communicators[communicator].ranks.size()] += one.payload;
    }
    CHECK(by_ranks[static_cast<std::size_t>(4) * data] == (layers * 6 * hidden + 2 * hidden) * 2_B);
  }
}

TEST_CASE("sequence parallelism changes nothing for one tensor rank") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK(to_text(lowered(graph, strategy(1))) == to_text(lowered(graph, "{}")));
}

TEST_CASE("a model without tokens is refused") {
  const model::Graph graph = model::evoformer({.layers = 1, .msa_rows = 4, .residues = 8});
  CHECK_THAT(lowering::refusal([&] { lowered(graph, strategy(2)); }),
             StartsWith("test.json: /strategy/sequence_parallel: expected a model whose"));
}

TEST_CASE("a sequence that does not divide is refused") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK_THAT(lowering::refusal([&] { lowered(graph, strategy(8)); }),
             StartsWith("test.json: /strategy/tensor: expected dimension s (tokens) of "));
}

}  // namespace stratagem::strategies::sequence_parallel_test

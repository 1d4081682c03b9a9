// Context parallelism: keys and values are gathered, their gradients reduced and scattered, nothing
// else moves.
#include <map>

#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::strategies::context_parallel_test {

using lowering::block_of;
using lowering::collectives;
using lowering::lowered;
using lowering::small_gpt;
using placement::CellPass;
using program::Block;
using program::Collective;
using program::Program;

namespace {

constexpr double batch = 12, sequence_length = 20, hidden = 48, layers = 4;
constexpr Bytes activation = batch * sequence_length * hidden * 2_B;  // b*s*h in fp16

std::string strategy(int context, const std::string& more = "") {
  return "{\"context\": " + std::to_string(context) + more + "}";
}

/// By kind: how many collectives of the given payload over the given ranks a block has.
std::map<cost::CollectiveKind, int> counts(const Program& program, const Block& block,
                                           const std::vector<int>& ranks, Bytes payload) {
  std::map<cost::CollectiveKind, int> result;
  for (const Collective& one : collectives(block)) {
    const int communicator = program.devices[0].groups[one.group];
    if (program.communicators[communicator].ranks != ranks) continue;
    CHECK(one.payload == payload);
    ++result[one.kind];
  }
  return result;
}

using Counts = std::map<cost::CollectiveKind, int>;
constexpr auto gather = cost::CollectiveKind::all_gather;
constexpr auto scatter = cost::CollectiveKind::reduce_scatter;

}  // namespace

TEST_CASE("a layer gathers keys and values, and reduces and scatters their gradients") {
  const model::Graph graph = model::gpt(small_gpt);
  for (const int c : {2, 4, 5}) {
    const Program program = lowered(graph, strategy(c));
    for (int layer = 1; layer <= 4; ++layer) {
      const Block& forward = block_of(program, layer, CellPass::forward);
      CHECK(collectives(forward).size() == 2);
      for (const Collective& one : collectives(forward)) {
        CHECK(one.kind == gather);
        CHECK(one.payload == activation);  // K, V: b*s*h once gathered
      }
      // Each rank has kept its own keys and values only: they are gathered again.
      Counts backward;
      for (const Collective& one : collectives(block_of(program, layer, CellPass::backward))) {
        CHECK(one.payload == activation);
        ++backward[one.kind];
      }
      CHECK(backward == Counts{{gather, 2}, {scatter, 2}});
    }
    CHECK(collectives(block_of(program, 0, CellPass::forward)).empty());
    CHECK(collectives(block_of(program, 5, CellPass::forward)).empty());
  }
}

TEST_CASE("a rank keeps its tokens' share of the activations, scores by query") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto kept = [&](const std::string& text) {
    return lowering::left_by(block_of(lowered(graph, text), 2, CellPass::forward),
                             program::Category::activations);
  };
  CHECK(kept(strategy(4)) == kept("{}") / 4);
}

TEST_CASE(
    "gradients of all weights are summed over context and data ranks, of positions over data") {
  const model::Graph graph = model::gpt(small_gpt);
  const auto all = static_cast<double>(model::gpt_parameters(small_gpt));
  const double positions = sequence_length * hidden;
  const Program program = lowered(graph, strategy(4, R"(, "data": 3)"));
  std::map<std::size_t, Bytes> by_ranks;
  for (const Collective& one : collectives(program, 0, program::Stream::gradient_communication)) {
    const int communicator = program.devices[0].groups[one.group];
    by_ranks[program.communicators[communicator].ranks.size()] += one.payload;
  }
  CHECK(by_ranks ==
        std::map<std::size_t, Bytes>{{12, (all - positions) * 2_B}, {3, positions / 4 * 2_B}});
}

TEST_CASE("context ranks stand between tensor ranks and data ranks") {
  const model::Graph graph = model::gpt(small_gpt);
  const Program program =
      lowered(graph, strategy(2, R"(, "tensor": 2, "sequence_parallel": true, "data": 3)"));
  CHECK(program.devices.size() == 12);
  const Block& forward = block_of(program, 2, CellPass::forward);
  const Block& backward = block_of(program, 2, CellPass::backward);
  // Along the tensor axis: Megatron's, of this rank's share of samples and tokens.
  const Bytes share = activation / (3 * 2);
  CHECK(counts(program, forward, {0, 1}, share) == Counts{{gather, 2}, {scatter, 2}});
  CHECK(counts(program, backward, {0, 1}, share) == Counts{{gather, 4}, {scatter, 2}});
  // Along the context axis: keys and values of this rank's samples and heads.
  CHECK(counts(program, forward, {0, 2}, share) == Counts{{gather, 2}});
  CHECK(counts(program, backward, {0, 2}, share) == Counts{{gather, 2}, {scatter, 2}});
}

TEST_CASE("stages stand context ranks apart, too") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK(lowered(graph, strategy(2, R"(, "pipeline": 4, "tensor": 2)"), 4).devices.size() == 16);
}

TEST_CASE("a sequence that does not divide over context ranks is refused") {
  const model::Graph graph = model::gpt(small_gpt);
  CHECK_THAT(lowering::refusal([&] { lowered(graph, strategy(3)); }),
             StartsWith("test.json: /strategy/context: expected dimension s (tokens) of "));
}

}  // namespace stratagem::strategies::context_parallel_test

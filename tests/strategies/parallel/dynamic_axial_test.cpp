// Dynamic axial parallelism of an Evoformer: the lowering finds FastFold's collectives.
#include <map>

#include "model/zoo/evoformer.hpp"
#include "tests/catch.hpp"
#include "tests/lowering/lowered.hpp"

namespace stratagem::strategies::dynamic_axial_test {

using lowering::block_of;
using lowering::collectives;
using lowering::lowered;
using placement::CellPass;
using program::Program;

namespace {

constexpr model::EvoformerConfig small{.layers = 3,
                                       .msa_rows = 16,
                                       .residues = 24,
                                       .msa_width = 40,
                                       .pair_width = 20,
                                       .msa_heads = 3,
                                       .pair_heads = 2,
                                       .head_width = 7,
                                       .outer_width = 5,
                                       .batch = 2};
constexpr double b = 2, s = 16, r = 24;
constexpr Bytes msa = b * s * r * 40 * 2_B;
constexpr Bytes pairs = b * r * r * 20 * 2_B;
constexpr Bytes factor = b * s * r * 5 * 2_B;
constexpr Bytes row_bias = b * 3 * r * r * 2_B;
constexpr Bytes triangle_bias = b * 2 * r * r * 2_B;

/// How often each payload occurs, in bytes.
using Payloads = std::map<Bytes, int>;
std::map<cost::CollectiveKind, Payloads> found(const program::Block& block) {
  std::map<cost::CollectiveKind, Payloads> result;
  for (const program::Collective& one : collectives(block)) ++result[one.kind][one.payload];
  return result;
}

constexpr auto gather = cost::CollectiveKind::all_gather;
constexpr auto scatter = cost::CollectiveKind::reduce_scatter;
constexpr auto exchange = cost::CollectiveKind::all_to_all;

}  // namespace

TEST_CASE("a block's forward pass takes six all-to-alls and six all-gathers") {
  // FastFold (hpcaitech/FastFold, model/fastnn): row_to_col and back of the MSA, four of the pairs;
  // gathers of the MSA's pair bias, the outer product's factor, one factor of each triangle
  // multiplication and two triangle biases.
  const model::Graph graph = model::evoformer(small);
  for (const int n : {2, 4, 8}) {
    const Program program = lowered(graph, "{\"dap\": " + std::to_string(n) + "}");
    const auto block = found(block_of(program, 2, CellPass::forward));
    CHECK(block.size() == 2);
    CHECK(block.at(exchange) == Payloads{{msa / n, 2}, {pairs / n, 4}});
    CHECK(block.at(gather) == Payloads{{row_bias, 1}, {factor, 1}, {pairs, 2}, {triangle_bias, 2}});
  }
}

TEST_CASE("a block's backward pass exchanges gradients and scatters those of what was gathered") {
  // Factors were kept divided and are gathered again for each other's gradients.
  const model::Graph graph = model::evoformer(small);
  for (const int n : {2, 4, 8}) {
    const Program program = lowered(graph, "{\"dap\": " + std::to_string(n) + "}");
    const auto block = found(block_of(program, 2, CellPass::backward));
    CHECK(block.size() == 3);
    CHECK(block.at(exchange) == Payloads{{msa / n, 2}, {pairs / n, 4}});
    CHECK(block.at(scatter) ==
          Payloads{{row_bias, 1}, {factor, 1}, {pairs, 2}, {triangle_bias, 2}});
    CHECK(block.at(gather) == Payloads{{factor, 1}, {pairs, 2}});
  }
}

TEST_CASE("inputs and head divide as the blocks do and communicate nothing") {
  const model::Graph graph = model::evoformer(small);
  const Program program = lowered(graph, R"({"dap": 4})");
  for (const int segment : {0, 4})
    CHECK(collectives(block_of(program, segment, CellPass::forward)).empty());
}

TEST_CASE("every rank holds all parameters and reduces their gradients") {
  const model::Graph graph = model::evoformer(small);
  const Bytes all = static_cast<double>(model::parameter_count(graph)) * 2_B;
  const Program program = lowered(graph, R"({"dap": 4, "data": 2})");
  CHECK(program.devices.size() == 8);
  CHECK(lowering::resident(program.sequences[0], program::Category::parameters) == all);
  Bytes reduced;
  for (const program::Collective& one :
       collectives(program, 0, program::Stream::gradient_communication)) {
    const int communicator = program.devices[0].groups[one.group];
    CHECK(program.communicators[communicator].ranks.size() == 8);
    reduced += one.payload;
  }
  CHECK(reduced == all);
}

TEST_CASE("a rank keeps its share of a block's activations") {
  // But for the masks of three dropouts that are shared along the divided axis.
  const model::Graph graph = model::evoformer(small);
  const auto kept = [&](const std::string& text) {
    return lowering::left_by(block_of(lowered(graph, text), 2, CellPass::forward),
                             program::Category::activations);
  };
  const Bytes whole = kept("{}");
  const Bytes divided = kept(R"({"dap": 4})");
  CHECK(divided > whole / 4);
  CHECK(divided < whole / 4 * 1.05);
}

TEST_CASE("Megatron-LM's choice divides an Evoformer's attentions and transitions only") {
  const model::Graph graph = model::evoformer({.layers = 2, .msa_rows = 8, .residues = 16});
  const Program program = lowered(graph, R"({"tensor": 2})");
  const auto block = found(block_of(program, 2, CellPass::forward));
  CHECK(block.size() == 1);
  int all_reduces = 0;
  for (const auto& [bytes, count] : block.at(cost::CollectiveKind::all_reduce))
    all_reduces += count;
  CHECK(all_reduces == 6);  // four attentions, two transitions
}

TEST_CASE("axial ranks of a model without axes are refused") {
  const model::Graph graph = model::gpt(lowering::small_gpt);
  CHECK_THAT(lowering::refusal([&] { lowered(graph, R"({"dap": 2})"); }),
             StartsWith("test.json: /strategy/dap: expected a model with axial attention"));
}

}  // namespace stratagem::strategies::dynamic_axial_test

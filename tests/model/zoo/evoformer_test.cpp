// The Evoformer against AlphaFold2's sizes and closed forms of parameters and FLOPs.
#include "model/zoo/evoformer.hpp"

#include <set>

#include "base/input_error.hpp"
#include "model/zoo/all.hpp"
#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::model::evoformer_test {

namespace {

constexpr EvoformerConfig small{.layers = 3,
                                .msa_rows = 6,
                                .residues = 10,
                                .msa_width = 24,
                                .pair_width = 20,
                                .msa_heads = 3,
                                .pair_heads = 2,
                                .head_width = 7,
                                .outer_width = 5,
                                .batch = 2};

Flops flops_of(const Graph& graph, const std::set<Pass>& passes, const std::string& prefix) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    if (passes.count(op.pass) > 0 && op.name.starts_with(prefix)) sum += flops(graph, op);
  }
  return sum;
}

const Operator& named(const Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.operators, name, &Operator::name);
  REQUIRE(found != graph.operators.end());
  return *found;
}

std::int64_t parameters_under(const Graph& graph, const std::string& prefix) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::parameter && tensor.name.starts_with(prefix))
      sum += element_count(tensor);
  }
  return sum;
}

Graph build(const std::string& text) {
  const auto family = std::ranges::find(families(), "evoformer", &Family::name);
  return *family->build(JsonReader::from_text(text, "test.json"), 2,
                        {DataType::bf16, DataType::bf16});
}

}  // namespace

TEST_CASE("a block of AlphaFold2's Evoformer has 1.83 million parameters") {
  // Supplement 1.6: c_m = 256, c_z = 128, heads 8 and 4 of 32, outer width 32; norms have scale and
  // shift, matrices a bias unless they make queries, keys, values or pair biases.
  const EvoformerConfig alphafold{.layers = 1, .msa_rows = 128, .residues = 256};
  const Graph graph = evoformer(alphafold);
  const auto part = [&](const std::string& name) {
    return parameters_under(graph, "blocks.0." + name + ".");
  };
  const std::int64_t attention = 3 * 256 * 256 + 2 * (256 * 256 + 256);
  CHECK(part("row_attention") == 512 + 256 + 128 * 8 + attention);
  CHECK(part("column_attention") == 512 + attention);
  CHECK(part("msa_transition") == 512 + 256 * 1024 + 1024 + 1024 * 256 + 256);
  CHECK(part("outer_product") == 512 + 2 * (256 * 32 + 32) + 32 * 32 * 128 + 128);
  for (const std::string name : {"triangle_outgoing", "triangle_incoming"})
    CHECK(part(name) == 2 * 256 + 6 * (128 * 128 + 128));
  for (const std::string name : {"triangle_starting", "triangle_ending"})
    CHECK(part(name) == 256 + 128 * 4 + 3 * 128 * 128 + 2 * (128 * 128 + 128));
  CHECK(part("pair_transition") == 256 + 128 * 512 + 512 + 512 * 128 + 128);
  CHECK(parameters_under(graph, "blocks.0.") == 1'829'952);
  CHECK(evoformer_block_parameters(alphafold) == 1'829'952);
}

TEST_CASE("the closed form of a block's parameters holds for other sizes") {
  const Graph graph = evoformer(small);
  for (const std::string block : {"blocks.0.", "blocks.1.", "blocks.2."})
    CHECK(parameters_under(graph, block) == evoformer_block_parameters(small));
}

TEST_CASE("a block's matrix products take the FLOPs of their sums") {
  const Graph graph = evoformer(small);
  const double b = 2, s = 6, r = 10, m = 24, z = 20, o = 5, hm = 3 * 7, hz = 2 * 7;
  // Per place: q, k, v, gate and projection. Per pair of places: scores and context.
  const double msa_attention = b * s * r * 5 * m * hm;
  const double row = msa_attention + b * s * r * r * 2 * hm + b * r * r * z * 3;
  const double column = msa_attention + b * r * s * s * 2 * hm;
  const double transitions = b * s * r * 8 * m * m + b * r * r * 8 * z * z;
  const double outer = b * s * r * 2 * m * o + b * s * r * r * o * o + b * r * r * o * o * z;
  const double multiplication = b * r * r * 6 * z * z + b * r * r * r * z;
  const double triangle = b * r * r * 5 * z * hz + b * r * r * r * 2 * hz + b * r * r * z * 2;
  const double forward =
      2 * (row + column + transitions + outer + 2 * multiplication + 2 * triangle);
  CHECK(flops_of(graph, {Pass::forward}, "blocks.1.") == Flops{forward});
  // Each product has two gradients of as many FLOPs.
  CHECK(flops_of(graph, {Pass::input_gradient, Pass::weight_gradient}, "blocks.1.") ==
        Flops{2 * forward});
}

TEST_CASE("column attention runs along the rows of every residue") {
  const Graph graph = evoformer(small);
  CHECK(graph.tensors[named(graph, "blocks.0.row_attention.scores").outputs[0]].shape ==
        std::vector<std::int64_t>{2, 6, 3, 10, 10});
  CHECK(graph.tensors[named(graph, "blocks.0.column_attention.scores").outputs[0]].shape ==
        std::vector<std::int64_t>{2, 10, 3, 6, 6});
}

TEST_CASE("gradients reach every parameter of every block") {
  const Graph graph = evoformer(small);
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    INFO(graph.tensors[id].name);
    if (graph.tensors[id].role == Role::parameter) CHECK(graph.gradient_of[id] >= 0);
  }
  CHECK(graph.segments.size() == 3 + 2);
  CHECK(graph.segments[1].backward.size() == graph.segments[2].backward.size());
}

TEST_CASE("recycling hands the last block's pairs to the input, without a gradient") {
  EvoformerConfig config = small;
  config.passes = 4;
  const Graph graph = evoformer(config);
  CHECK(graph.forward_repeats == 4);
  REQUIRE(graph.recycled.size() == 1);
  const auto& [from, to] = graph.recycled.front();
  CHECK(graph.tensors[from].name == "blocks.2.pair_transition.residual.out");
  CHECK(graph.tensors[to].name == "input.previous_pair");
  CHECK(graph.tensors[from].shape == graph.tensors[to].shape);
  CHECK(graph.tensors[to].role == Role::input);
  CHECK(graph.gradient_of[to] == -1);
  const std::vector<TensorId>& read = named(graph, "head.distogram").inputs;
  CHECK(std::ranges::count(read, from) == 1);
}

TEST_CASE("an Evoformer is read from its sizes, with AlphaFold2's widths") {
  const Graph graph = build(R"({"layers": 2, "msa_rows": 8, "residues": 16, "passes": 3})");
  CHECK(graph.segments.size() == 4);
  CHECK(graph.forward_repeats == 3);
  CHECK(graph.sample_tokens == 16);
  CHECK(parameters_under(graph, "blocks.1.") == 1'829'952);
  const Graph narrow = build(R"({"layers": 1, "msa_rows": 8, "residues": 16, "msa_width": 24,
    "pair_width": 20, "msa_heads": 3, "pair_heads": 2, "head_width": 7, "outer_width": 5})");
  CHECK(parameters_under(narrow, "blocks.0.") == evoformer_block_parameters(small));
  CHECK_THROWS_AS(build(R"({"layers": 2, "msa_rows": 8})"), InputError);
  CHECK_THROWS_AS(build(R"({"layers": 2, "msa_rows": 8, "residues": 0})"), InputError);
}

}  // namespace stratagem::model::evoformer_test

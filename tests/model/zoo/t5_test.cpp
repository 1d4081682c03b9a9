// T5 graphs against published sizes, closed forms of FLOPs, and who reads the encoder's result.
#include "model/zoo/t5.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::model::t5_test {

namespace {

struct Published {
  std::string name;
  T5Config config;
  std::int64_t parameters;  ///< of the released checkpoint
};

T5Config sized(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t width,
               std::int64_t intermediate, bool newer = false) {
  T5Config c;
  c.layers = c.decoder_layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  c.head_width = width;
  c.intermediate = intermediate;
  c.sequence = 512;
  c.decoder_sequence = 114;
  c.vocabulary = 32128;
  c.variant.mlp = newer ? T5Mlp::gated_gelu : T5Mlp::relu;
  c.tied = !newer;
  return c;
}

/// Sizes: Raffel et al., arXiv:1910.10683, section 3.7, and the configurations of the checkpoints;
/// numbers of parameters: sums over the tensors of the checkpoints, as their pages on Hugging Face
/// have them.
const std::vector<Published> table = {
    {"T5 small", sized(6, 512, 8, 64, 2048), 60'506'624},
    {"T5 base", sized(12, 768, 12, 64, 3072), 222'903'552},
    {"T5 large", sized(24, 1024, 16, 64, 4096), 737'668'096},
    {"T5 3B", sized(24, 1024, 32, 128, 16384), 2'851'598'336},
    {"T5 1.1 small", sized(8, 512, 6, 64, 1024, true), 76'961'152},
    {"T5 1.1 base", sized(12, 768, 12, 64, 2048, true), 247'577'856}};

T5Config tiny() {
  T5Config c = sized(3, 12, 2, 5, 20);
  c.decoder_layers = 2;
  c.sequence = 7;
  c.decoder_sequence = 4;
  c.vocabulary = 11;
  c.batch = 3;
  return c;
}

const Operator& named(const Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.operators, name, &Operator::name);
  REQUIRE(found != graph.operators.end());
  return *found;
}

}  // namespace

TEST_CASE("T5 models have as many parameters as the released checkpoints") {
  for (const Published& p : table) {
    INFO(p.name);
    CHECK(t5_parameters(p.config) == p.parameters);
    CHECK(parameter_count(t5(p.config)) == p.parameters);
    T5Config without = p.config;
    without.bias_buckets = 0;  // 32 biases for every head of either stack
    CHECK(parameter_count(t5(without)) == p.parameters - 2 * 32 * p.config.heads);
    CHECK(t5_parameters(without) == parameter_count(t5(without)));
  }
}

TEST_CASE("Megatron-LM's T5 has biases, shifts of norms and one table of positions besides") {
  for (const T5Mlp mlp : {T5Mlp::relu, T5Mlp::gelu, T5Mlp::gated_gelu}) {
    T5Config published = tiny(), c = tiny();
    c.variant.kind = T5Kind::megatron;
    published.variant.mlp = c.variant.mlp = mlp;
    published.bias_buckets = c.bias_buckets = 0;
    const std::int64_t h = 12, i = 10, f = 20, encoders = 3, decoders = 2;
    // Matrices of attention: 3i + h; of a cross-attention i + 2i + h; of the MLP f or 2f, and h.
    const std::int64_t inner = mlp == T5Mlp::gated_gelu ? 2 * f : f;
    const std::int64_t biases =
        encoders * (3 * i + h + inner + h) + decoders * (2 * (3 * i + h) + inner + h) + 11;
    const std::int64_t shifts = encoders * 2 * h + decoders * 3 * h + 2 * h;
    const Graph graph = t5(c);
    CHECK(parameter_count(graph) == parameter_count(t5(published)) + biases + shifts + 7 * h);
    CHECK(step_flops(graph) == step_flops(t5(published)));
    c.tied = false;  // a table more, and no bias of the logits
    CHECK(parameter_count(t5(c)) == parameter_count(graph) + 11 * h - 11);
  }
}

TEST_CASE("forward products of a T5 are those of its matrices and of all pairs of tokens") {
  for (const bool gated : {false, true}) {
    T5Config c = tiny();
    c.variant.mlp = gated ? T5Mlp::gated_gelu : T5Mlp::relu;
    const double h = 12, i = 10, mlp = (gated ? 3 : 2) * 12 * 20;
    const double encoded = 3 * 7, decoded = 3 * 4;  // tokens
    const double encoder = 3 * (encoded * (4 * h * i + mlp) + 2 * encoded * 7 * i);
    // A cross-attention's keys and values are of the encoder's tokens, its pairs of both.
    const double decoder = 2 * (decoded * (4 * h * i + mlp) + 2 * decoded * 4 * i +
                                decoded * 2 * h * i + encoded * 2 * h * i + 2 * decoded * 7 * i);
    const Flops forward{2 * (encoder + decoder + decoded * h * 11)};
    const Graph graph = t5(c);
    Flops sum;
    for (const Operator& op : graph.operators) {
      if (op.pass == Pass::forward) sum += flops(graph, op);
    }
    CHECK(close(sum, forward, 1e-12));
    CHECK(close(step_flops(graph), 3 * forward, 1e-12));
  }
}

TEST_CASE("a T5 has a segment for each embedding, one for every layer, one for the head") {
  const Graph graph = t5(tiny());
  REQUIRE(graph.segments.size() == 1 + 3 + 1 + 2 + 1);
  CHECK(layers(graph) == std::vector{1, 2, 3, 5, 6});
  CHECK(graph.sample_tokens == 7 + 4);
  // Tables are stepped where they are read first: biases in the first layers, words at the start.
  CHECK(graph.segments[0].optimizer.size() == 1);
  CHECK(graph.segments[1].optimizer.size() == 6 + 1);
  CHECK(graph.segments[2].optimizer.size() == 6);
  CHECK(graph.segments[3].optimizer.size() == 6 + 1);  // the encoder's last norm
  CHECK(graph.segments[4].optimizer.empty());
  CHECK(graph.segments[5].optimizer.size() == 10 + 1);
  CHECK(graph.segments[6].optimizer.size() == 10);
  CHECK(graph.segments[7].optimizer.size() == 1);
}

TEST_CASE("the encoder's result is read by all decoder layers, each through the one before") {
  T5Config c = tiny();
  c.decoder_layers = 4;
  const Graph graph = t5(c);
  TensorId encoded = named(graph, "encoder.2.final_dropout").outputs[0];
  for (int layer = 0; layer < 4; ++layer) {
    const std::string name = "decoder." + std::to_string(layer) + ".";
    CHECK(named(graph, name + "cross.kv").inputs[0] == encoded);
    std::set<int> readers;
    for (const Operator& op : graph.operators) {
      if (op.pass == Pass::forward && std::ranges::count(op.inputs, encoded) > 0)
        readers.insert(op.segment);
    }
    CHECK(readers == std::set<int>{5 + layer});  // 4: the decoder's embedding
    if (layer < 3) encoded = named(graph, name + "encoded").outputs[0];
  }
  // Gradients come back the same way: every layer but the last adds its own to what comes back.
  const auto sums = std::ranges::count_if(graph.operators, [&](const Operator& op) {
    const std::vector<std::int64_t>& shape = graph.tensors[op.outputs[0]].shape;
    return op.kind == OpKind::gradient_sum && op.segment >= 4 &&
           shape == std::vector<std::int64_t>{3, 7, 12};
  });
  CHECK(sums == 3);
}

TEST_CASE(
    "a T5 drops out after embeddings, on probabilities, within MLPs and before sums, or nowhere") {
  T5Config c = tiny();
  const auto count = [](const Graph& graph, int segment) {
    return std::ranges::count_if(graph.operators, [&](const Operator& op) {
      const bool drops = op.kind == OpKind::dropout || op.kind == OpKind::attention_dropout;
      return drops && op.pass == Pass::forward && op.segment == segment;
    });
  };
  // Probabilities and results of attentions, within the MLP and after it.
  CHECK(count(t5(c), 2) == 2 + 2);
  CHECK(count(t5(c), 4) == 1);  // the decoder's embedding
  CHECK(count(t5(c), 5) == 4 + 2);
  c.dropout = false;
  for (int segment = 0; segment < 8; ++segment) CHECK(count(t5(c), segment) == 0);
}

}  // namespace stratagem::model::t5_test

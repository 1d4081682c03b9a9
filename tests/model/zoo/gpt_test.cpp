// GPT graphs against published sizes and closed forms of parameters, FLOPs and operators.
#include "model/zoo/gpt.hpp"

#include <set>

#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::model::gpt_test {

namespace {

struct Published {
  std::string name;
  std::int64_t layers, hidden, heads, sequence, vocabulary;
  double printed;    ///< parameters as the publication prints them
  double tolerance;  ///< half a unit of the last printed digit, or what the note says
};

/// GPT-2: Radford et al. 2019, table 2, as corrected in openai/gpt-2's README (124M, 355M, 774M,
/// 1558M). Megatron-LM: Shoeybi et al., arXiv:1909.08053, table 2 with heads of 96, vocabulary
/// padded to 51,200. GPT-3: Brown et al., arXiv:2005.14165, table 2.1, which prints 24 heads of 128
/// for a hidden size of 2048 and a hidden size of 5140 for 40 heads of 128; here 16 and 5120.
const std::vector<Published> table = {
    {"GPT-2 small", 12, 768, 12, 1024, 50257, 124e6, 0.5e6},
    {"GPT-2 medium", 24, 1024, 16, 1024, 50257, 355e6, 0.5e6},
    {"GPT-2 large", 36, 1280, 20, 1024, 50257, 774e6, 0.5e6},
    {"GPT-2 XL", 48, 1600, 25, 1024, 50257, 1558e6, 0.5e6},
    {"Megatron 1.2B", 40, 1536, 16, 1024, 51200, 1.2e9, 0.05e9},
    {"Megatron 2.5B", 54, 1920, 20, 1024, 51200, 2.5e9, 0.05e9},
    {"Megatron 4.2B", 64, 2304, 24, 1024, 51200, 4.2e9, 0.05e9},
    {"Megatron 8.3B", 72, 3072, 32, 1024, 51200, 8.3e9, 0.05e9},
    {"GPT-3 125M", 12, 768, 12, 2048, 50257, 125e6, 0.5e6},
    {"GPT-3 350M", 24, 1024, 16, 2048, 50257, 350e6, 6e6},  // 355.9M: the paper rounds to 50M
    {"GPT-3 760M", 24, 1536, 16, 2048, 50257, 760e6, 5e6},
    {"GPT-3 1.3B", 24, 2048, 16, 2048, 50257, 1.3e9, 0.05e9},
    {"GPT-3 2.7B", 32, 2560, 32, 2048, 50257, 2.7e9, 0.05e9},
    {"GPT-3 6.7B", 32, 4096, 32, 2048, 50257, 6.7e9, 0.05e9},
    {"GPT-3 13B", 40, 5120, 40, 2048, 50257, 13e9, 0.5e9},
    {"GPT-3 175B", 96, 12288, 96, 2048, 50257, 175e9, 0.5e9}};

GptConfig config_of(const Published& p, std::int64_t batch = 1) {
  return {.layers = p.layers,
          .hidden = p.hidden,
          .heads = p.heads,
          .sequence = p.sequence,
          .vocabulary = p.vocabulary,
          .batch = batch};
}

Flops total(const Graph& graph, const std::set<Pass>& passes) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    if (passes.count(op.pass) > 0) sum += flops(graph, op);
  }
  return sum;
}

}  // namespace

TEST_CASE("GPT models have the published numbers of parameters") {
  for (const Published& p : table) {
    INFO(p.name);
    // Per layer: weights 3h^2 + h^2 + 4h^2 + 4h^2, biases 3h + h + 4h + h, two norms of 2h each;
    // tokens Vh, positions sh, the final norm 2h; logits use the token table.
    const std::int64_t h = p.hidden;
    const std::int64_t closed_form =
        12 * p.layers * h * h + 13 * p.layers * h + (p.vocabulary + p.sequence + 2) * h;
    CHECK(parameter_count(gpt(config_of(p))) == closed_form);
    CHECK(gpt_parameters(config_of(p)) == closed_form);
    CHECK(std::abs(static_cast<double>(closed_form) - p.printed) <= p.tolerance);
  }
}

TEST_CASE("variants of a GPT have the parameters of their parts") {
  GptConfig config = config_of(table[0]);
  const std::int64_t h = config.hidden, layers = config.layers, s = config.sequence;
  const std::int64_t whole = gpt_parameters(config);
  const auto fewer = [&](const GptVariant& variant) {
    GptConfig other = config;
    other.variant = variant;
    return whole - parameter_count(gpt(other));
  };
  CHECK(fewer({}) == 0);
  CHECK(fewer({.norm = OpKind::rms_norm}) == (2 * layers + 1) * h);  // shifts
  CHECK(fewer({.positions = Positions::rotary}) == s * h);
  CHECK(fewer({.positions = Positions::none}) == s * h);
  CHECK(fewer({.biases = false}) == layers * 9 * h);
  // 9 of 12 keys and 9 of 12 values, with their biases.
  CHECK(fewer({.kv_heads = 3}) == layers * 2 * (h + 1) * (h - h / 4));
  CHECK(fewer({.qk_norm = true}) == -layers * 4 * (h / config.heads));
  CHECK(fewer({.norm = OpKind::rms_norm, .qk_norm = true}) ==
        (2 * layers + 1) * h - layers * 2 * (h / config.heads));
  config.activation = OpKind::squared_relu;
  CHECK(fewer({}) == 0);
  config.activation = OpKind::swiglu;  // a third matrix of 4h columns, and its bias
  CHECK(fewer({}) == -layers * (4 * h * h + 4 * h));
}

TEST_CASE("GPT-2 has as many parameters as the released checkpoints") {
  // Sums over the tensors of the checkpoints that OpenAI released (transformers' num_parameters()).
  CHECK(gpt_parameters(config_of(table[0])) == 124'439'808);
  CHECK(gpt_parameters(config_of(table[1])) == 354'823'168);
  CHECK(gpt_parameters(config_of(table[2])) == 774'030'080);
  CHECK(gpt_parameters(config_of(table[3])) == 1'557'611'200);
}

TEST_CASE("matrix products take 24bsh^2(1 + s/6h) per layer forward, and 2bshV for the logits") {
  // QKV 6bsh^2, scores 2bs^2h, context 2bs^2h, projection 2bsh^2, MLP 16bsh^2.
  for (const Published& p : table) {
    INFO(p.name);
    const auto h = static_cast<double>(p.hidden);
    const auto s = static_cast<double>(p.sequence);
    const auto layers = static_cast<double>(p.layers);
    const double b = 2;
    const double forward = layers * (24 * b * s * h * h + 4 * b * s * s * h) +
                           2 * b * s * h * static_cast<double>(p.vocabulary);
    CHECK(total(gpt(config_of(p, 2)), {Pass::forward}) == Flops{forward});
  }
}

TEST_CASE("a training step takes 72BLsh^2(1 + s/6h + V/12hL) in matrix products") {
  // Narayanan et al., arXiv:2104.04473, equation 3, without recomputation: backward is twice
  // forward, as every product of two matrices has two gradients of as many FLOPs.
  for (const Published& p : table) {
    INFO(p.name);
    const auto h = static_cast<double>(p.hidden);
    const auto s = static_cast<double>(p.sequence);
    const auto layers = static_cast<double>(p.layers);
    const double batch = 2;
    const double published =
        72 * batch * layers * s * h * h *
        (1 + s / (6 * h) + static_cast<double>(p.vocabulary) / (12 * h * layers));
    const Graph graph = gpt(config_of(p, 2));
    CHECK(close(total(graph, {Pass::forward, Pass::input_gradient, Pass::weight_gradient}),
                Flops{published}, 1e-12));
  }
}

TEST_CASE("a GPT has one segment for embeddings, one per layer and one for the head") {
  const Graph graph = gpt(config_of(table[0]));
  REQUIRE(graph.segments.size() == 14);
  for (std::size_t layer = 2; layer <= 12; ++layer) {
    CHECK(graph.segments[layer].forward.size() == graph.segments[1].forward.size());
    CHECK(graph.segments[layer].backward.size() == graph.segments[1].backward.size());
    CHECK(graph.segments[layer].optimizer.size() == 12);  // 4 matrices, 4 biases, 2 norms of 2
  }
  CHECK(graph.segments.front().optimizer.size() == 2);  // tokens and positions
  CHECK(graph.segments.back().optimizer.size() == 2);   // the norm; the token table is stepped once
}

TEST_CASE("an MLP of another width has 2fh + f + h parameters in place of 8h^2 + 5h") {
  // OPT-175B's neighbours keep 4h; BigScience ran 58B parameters with 16384 for a hidden size of
  // 11600.
  GptConfig config{.layers = 2, .hidden = 116, .heads = 4, .sequence = 8, .vocabulary = 32};
  const std::int64_t usual = gpt_parameters(config);
  config.intermediate = 4 * 116;
  CHECK(gpt_parameters(config) == usual);
  config.intermediate = 164;
  const std::int64_t narrower = usual - 2 * (2 * (464 - 164) * 116 + 464 - 164);
  CHECK(gpt_parameters(config) == narrower);
  CHECK(parameter_count(gpt(config)) == narrower);
}

TEST_CASE(
    "without dropout, with ReLU or with fused attention a GPT keeps its parameters and products") {
  GptConfig config = config_of(table[0]);
  const Graph usual = gpt(config);
  config.dropout = false;
  config.activation = OpKind::relu;
  const Graph without = gpt(config);
  config.fused_attention = true;
  for (const Graph& graph : {without, gpt(config)}) {
    CHECK(parameter_count(graph) == parameter_count(usual));
    CHECK(close(step_flops(graph), step_flops(usual), 1e-12));
    for (const Operator& op : graph.operators) {
      CHECK(op.kind != OpKind::dropout);
      CHECK(op.kind != OpKind::attention_dropout);
      CHECK(op.kind != OpKind::gelu);
    }
  }
}

}  // namespace stratagem::model::gpt_test

// BERT graphs against released sizes and closed forms of FLOPs, and what tokens see.
#include "model/zoo/bert.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::model::bert_test {

namespace {

BertConfig sized(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.layers = layers, .hidden = hidden, .heads = heads, .sequence = 512, .vocabulary = 30522};
}

std::int64_t of_kind(const Graph& graph, OpKind kind) {
  return std::ranges::count_if(graph.operators, [&](const Operator& op) {
    return op.kind == kind && op.pass == Pass::forward;
  });
}

}  // namespace

TEST_CASE("BERT has as many parameters as the released checkpoints") {
  // Sums over the tensors of bert-base-uncased and bert-large-uncased with both heads, as
  // transformers counts them (BertForPreTraining).
  CHECK(parameter_count(bert(sized(12, 768, 12))) == 110'106'428);
  CHECK(parameter_count(bert(sized(24, 1024, 16))) == 336'226'108);
  for (const bool sentences : {false, true}) {
    for (const NormPlace norms : {NormPlace::before, NormPlace::after}) {
      BertConfig c = sized(3, 64, 4);
      c.norms = norms;  // one norm before the first layer, or one behind the last
      c.next_sentence = sentences;
      CHECK(parameter_count(bert(c)) == bert_parameters(c));
      c.intermediate = 100;
      c.tied = false;
      CHECK(parameter_count(bert(c)) == bert_parameters(c));
    }
  }
}

TEST_CASE("Megatron-LM's BERTs have the sizes that their paper prints") {
  // Shoeybi et al., arXiv:1909.08053, table 4: 336M, 1.3B and 3.9B.
  const auto rounded = [](std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
    BertConfig c = sized(layers, hidden, heads);
    c.norms = NormPlace::before;
    return static_cast<double>(parameter_count(bert(c))) / 1e6;
  };
  CHECK(rounded(24, 1024, 16) == Approx(336).margin(1));
  CHECK(rounded(24, 2048, 32) == Approx(1300).margin(50));
  CHECK(rounded(48, 2560, 40) == Approx(3900).margin(50));
}

TEST_CASE("products of a BERT are those of its matrices, both heads' too, and of all pairs") {
  const double b = 3, s = 20, h = 48, v = 56, layers = 2;
  for (const bool fused : {false, true}) {
    const Graph graph = bert({.layers = 2,
                              .hidden = 48,
                              .heads = 8,
                              .sequence = 20,
                              .vocabulary = 56,
                              .batch = 3,
                              .fused_attention = fused});
    const double tokens = b * s;
    const double forward = 2 * (layers * (tokens * 12 * h * h + 2 * tokens * s * h) +
                                tokens * (h * h + v * h) + b * (h * h + 2 * h));
    CHECK(close(step_flops(graph), Flops{3 * forward}, 1e-12));
    CHECK(of_kind(graph, OpKind::fused_attention_to_all) == (fused ? 2 : 0));
    CHECK(of_kind(graph, OpKind::scaled_softmax) == (fused ? 0 : 2));
    CHECK(of_kind(graph, OpKind::masked_softmax) + of_kind(graph, OpKind::fused_attention) == 0);
  }
}

TEST_CASE("norms of a BERT stand before attention and MLP, or after what is added to them") {
  BertConfig c = sized(2, 64, 4);
  const auto reads_a_norm = [](const Graph& graph, const std::string& name) {
    const auto op = std::ranges::find(graph.operators, name, &Operator::name);
    REQUIRE(op != graph.operators.end());
    return graph.tensors[op->inputs[0]].name.find("norm") != std::string::npos;
  };
  for (const NormPlace norms : {NormPlace::before, NormPlace::after}) {
    c.norms = norms;
    const Graph graph = bert(c);
    CHECK(of_kind(graph, OpKind::layer_norm) == 2 * 2 + 1 + 1);
    CHECK(reads_a_norm(graph, "layers.1.attention.qkv"));
    CHECK(reads_a_norm(graph, "head.words.dense"));
    CHECK(reads_a_norm(graph, "layers.0.mlp.fc1"));
    // The sum's second operand: x itself, or what a norm made of it.
    const auto sum =
        std::ranges::find(graph.operators, "layers.1.attention.residual", &Operator::name);
    const bool normed = graph.tensors[sum->inputs[1]].name.find("norm") != std::string::npos;
    CHECK(normed == (norms == NormPlace::after));
  }
}

}  // namespace stratagem::model::bert_test

// Builds the GPT graph from its configuration.
#include "model/zoo/gpt.hpp"

#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "model/builder.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/cross_entropy.hpp"
#include "model/zoo/dropout.hpp"
#include "model/zoo/fused_attention.hpp"
#include "model/zoo/prefix.hpp"

namespace stratagem::model {
namespace {

Mlp mlp_of(const GptConfig& c) {
  return {.inner = c.intermediate > 0 ? c.intermediate : 4 * c.hidden, .activation = c.activation};
}

class Gpt {
 public:
  explicit Gpt(const GptConfig& config) : c_(config), build_("gpt") {}

  Graph build() && {
    TensorId x = embeddings();
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) {
      build_.begin_segment("layers." + std::to_string(layer));
      x = feed_forward(attention(x), layer);
    }
    return std::move(build_).finish(head(x));
  }

 private:
  TensorId activation(const std::string& name, std::vector<std::int64_t> shape) {
    return build_.tensor(name, std::move(shape), c_.type, Role::activation);
  }
  TensorId hidden_state(const std::string& name) {
    return activation(name, {c_.batch, c_.sequence, c_.hidden});
  }

  TensorId embeddings() {
    build_.begin_segment("embedding");
    const TensorId tokens =
        build_.tensor("tokens", {c_.batch, c_.sequence}, DataType::int64, Role::input);
    word_table_ = build_.parameter("words", {c_.vocabulary, c_.hidden}, c_.type);
    const TensorId position_table =
        build_.parameter("positions", {c_.sequence, c_.hidden}, c_.type);
    const TensorId words = hidden_state("word_rows");
    build_.add(OpKind::embedding, "lookup", "b s, vocabulary+ h -> b s h", {tokens, word_table_},
               {words});
    const TensorId placed = hidden_state("placed");
    build_.add(OpKind::add, "add_positions", "b s h, s h -> b s h", {words, position_table},
               {placed});
    return dropout("dropout", placed, "b s h");
  }

  TensorId norm(const std::string& name, TensorId x) {
    const TensorId scale = build_.parameter(name + ".scale", {c_.hidden}, c_.type);
    const TensorId shift = build_.parameter(name + ".shift", {c_.hidden}, c_.type);
    const TensorId y = hidden_state(name + ".out");
    // Mean and reciprocal deviation of every token, in fp32.
    const TensorId statistics = build_.tensor(name + ".statistics", {c_.batch, c_.sequence, 2},
                                              DataType::fp32, Role::statistic);
    build_.add(OpKind::layer_norm, name, "b s h^, h^, h^ -> b s h^, b s two^", {x, scale, shift},
               {y, statistics});
    return y;
  }

  TensorId linear(const std::string& name, TensorId x, std::int64_t out) {
    return model::linear(build_, tokens(c_.batch, c_.sequence), name, x, out, Bias::added);
  }

  TensorId dropout(const std::string& name, TensorId x, const std::string& dims,
                   OpKind kind = OpKind::dropout) {
    return c_.dropout ? model::dropout(build_, name, x, dims, kind) : x;
  }

  TensorId residual(const std::string& name, TensorId branch, TensorId x) {
    const TensorId sum = hidden_state(name + ".out");
    build_.add(OpKind::add, name, "b s h, b s h -> b s h", {branch, x}, {sum});
    return sum;
  }

  TensorId attention(TensorId x) {
    const std::int64_t head = c_.hidden / c_.heads;
    const TensorId qkv = linear("attention.qkv", norm("input_norm", x), 3 * c_.hidden);
    const TensorId core = c_.fused_attention ? fused_core(qkv, head) : core_in_parts(qkv, head);
    const TensorId out = linear("attention.projection", core, c_.hidden);
    return residual("attention.residual", dropout("attention.output_dropout", out, "b s h"), x);
  }

  TensorId fused_core(TensorId qkv, std::int64_t head) {
    const std::vector<std::int64_t> per_head = {c_.batch, c_.sequence, c_.heads, head};
    const TensorId q = activation("attention.q", per_head);
    const TensorId k = activation("attention.k", per_head);
    const TensorId v = activation("attention.v", per_head);
    build_.add(OpKind::split_heads, "attention.split_heads",
               "b s (heads e^) -> b s heads d^, b s heads d^, b s heads d^", {qkv}, {q, k, v});
    return fused_attention(build_, "attention.core", q, k, v, c_.heads);
  }

  TensorId core_in_parts(TensorId qkv, std::int64_t head) {
    const std::vector<std::int64_t> per_head = {c_.batch, c_.heads, c_.sequence, head};
    const std::vector<std::int64_t> square = {c_.batch, c_.heads, c_.sequence,
                                              c_.prefix + c_.sequence};
    const TensorId q = activation("attention.q", per_head);
    TensorId k = activation("attention.k", per_head);
    TensorId v = activation("attention.v", per_head);
    build_.add(OpKind::split_heads, "attention.split_heads",
               "b s (heads e^) -> b heads s d^, b heads s d^, b heads s d^", {qkv}, {q, k, v});
    k = with_prefix(build_, "keys", k, c_.prefix, "heads");
    v = with_prefix(build_, "values", v, c_.prefix, "heads");
    const TensorId scores = activation("attention.scores", square);
    build_.add(OpKind::contraction, "attention.scores", "b heads s d+, b heads t d+ -> b heads s t",
               {q, k}, {scores});
    const TensorId probabilities = activation("attention.probabilities", square);
    build_.add(OpKind::masked_softmax, "attention.softmax", "b heads s t^ -> b heads s t^",
               {scores}, {probabilities});
    const TensorId kept =
        dropout("attention.dropout", probabilities, "b heads s t", OpKind::attention_dropout);
    const TensorId context = activation("attention.context", per_head);
    build_.add(OpKind::contraction, "attention.context", "b heads s t+, b heads t d -> b heads s d",
               {kept, v}, {context});
    const TensorId merged = hidden_state("attention.merged");
    build_.add(OpKind::merge_heads, "attention.merge_heads", "b heads s d^ -> b s (heads d^)",
               {context}, {merged});
    return merged;
  }

  TensorId feed_forward(TensorId x, std::int64_t layer) {
    const TensorId y =
        model::feed_forward(build_, norm("mlp_norm", x), layer, c_.experts, mlp_of(c_));
    return residual("mlp.residual", dropout("mlp.dropout", y, "b s h"), x);
  }

  TensorId head(TensorId x) {
    build_.begin_segment("head");
    const std::vector<std::int64_t> wide = {c_.batch, c_.sequence, c_.vocabulary};
    const TensorId y = norm("final_norm", x);
    const TensorId table =
        c_.tied ? word_table_
                : build_.parameter("logits.weight", {c_.vocabulary, c_.hidden}, c_.type);
    const TensorId logits = activation("logits", wide);
    build_.add(OpKind::contraction, "logits", "b s k+, vocabulary k+ -> b s vocabulary", {y, table},
               {logits});
    return cross_entropy(build_, logits, "b s", "vocabulary");
  }

  const GptConfig& c_;
  Builder build_;
  TensorId word_table_ = -1;
};

}  // namespace

Graph gpt(const GptConfig& config) {
  expects(config.prefix == 0 || !config.fused_attention, "a fused attention knows no prefix");
  Graph graph = Gpt(config).build();
  if (config.prefix > 0) graph = train_prefixes_only(std::move(graph));
  graph.sample_tokens = config.sequence;
  return graph;
}

namespace {

void complete_gpt(GptConfig& c, const JsonReader& config) {
  if (c.hidden % c.heads != 0)
    config.at("heads").fail("a divisor of hidden, " + std::to_string(c.hidden));
  check_experts(config, c.experts, c.layers);
  check_prefix(config, c.fused_attention);
}

}  // namespace

Family gpt_family() {
  using C = GptConfig;
  const auto size = whole(1, 10'000'000);
  return family_of<C>(
      "gpt", "GPT-2, GPT-3, OPT, mixtures of experts: learned positions",
      with_experts<C>(
          {{"layers", &C::layers, whole(1, 10'000), "layers", must_be_there},
           {"hidden", &C::hidden, size, "hidden size", must_be_there},
           {"heads", &C::heads, size, "heads of every attention; divides `hidden`", must_be_there},
           {"sequence", &C::sequence, size, "tokens of a sample", must_be_there},
           {"vocabulary", &C::vocabulary, size, "entries of the table, as padded for the run",
            must_be_there},
           {"intermediate", &C::intermediate, size, "width of the MLP, and of experts",
            "4 x `hidden`"},
           {"activation", &C::activation,
            choice<OpKind>({{"gelu", OpKind::gelu}, {"relu", OpKind::relu}}), "of the MLP"},
           {"dropout", &C::dropout, flag(),
            "after the embeddings, on attention probabilities and before residual sums, or "
            "nowhere"},
           fused_attention_option<C>(&C::fused_attention),
           {"tied", &C::tied, flag(), "logits use the word embedding, or a table of their own"},
           prefix_option(&C::prefix)}),
      &complete_gpt, &gpt);
}

}  // namespace stratagem::model

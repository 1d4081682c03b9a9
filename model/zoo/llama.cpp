// Builds the Llama graph from its configuration.
#include "model/zoo/llama.hpp"

#include <string>
#include <utility>

#include "base/input_error.hpp"
#include "model/builder.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/cross_entropy.hpp"
#include "model/zoo/fused_attention.hpp"
#include "model/zoo/prefix.hpp"

namespace stratagem::model {
namespace {

std::int64_t width_of_keys(const LlamaConfig& c) { return c.kv_heads * (c.hidden / c.heads); }

Mlp mlp_of(const LlamaConfig& c) {
  return {.inner = c.intermediate, .activation = c.fused.swiglu ? OpKind::swiglu : OpKind::silu};
}

class Llama {
 public:
  explicit Llama(const LlamaConfig& config) : c_(config), build_("llama") {}

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
  TensorId states(const std::string& name, std::int64_t width) {
    return activation(name, {c_.batch, c_.sequence, width});
  }

  TensorId embeddings() {
    build_.begin_segment("embedding");
    const TensorId tokens =
        build_.tensor("tokens", {c_.batch, c_.sequence}, DataType::int64, Role::input);
    word_table_ = build_.parameter("words", {c_.vocabulary, c_.hidden}, c_.type);
    const TensorId words = states("word_rows", c_.hidden);
    build_.add(OpKind::embedding, "lookup", "b s, vocabulary+ h -> b s h", {tokens, word_table_},
               {words});
    return words;
  }

  TensorId norm(const std::string& name, TensorId x) {
    const TensorId scale = build_.parameter(name + ".scale", {c_.hidden}, c_.type);
    const TensorId y = states(name + ".out", c_.hidden);
    // Reciprocal root mean square of every token, in fp32.
    const TensorId statistics = build_.tensor(name + ".statistics", {c_.batch, c_.sequence, 1},
                                              DataType::fp32, Role::statistic);
    build_.add(OpKind::rms_norm, name, "b s h^, h^ -> b s h^, b s one^", {x, scale},
               {y, statistics});
    return y;
  }

  TensorId linear(const std::string& name, TensorId x, std::int64_t out) {
    return model::linear(build_, tokens(c_.batch, c_.sequence), name, x, out, Bias::none);
  }

  TensorId residual(const std::string& name, TensorId branch, TensorId x) {
    const TensorId sum = states(name + ".out", c_.hidden);
    build_.add(OpKind::add, name, "b s h, b s h -> b s h", {branch, x}, {sum});
    return sum;
  }

  TensorId attention(TensorId x) {
    const TensorId qkv =
        linear("attention.qkv", norm("input_norm", x), c_.hidden + 2 * width_of_keys(c_));
    const TensorId core = c_.fused.attention ? fused_core(qkv) : core_in_parts(qkv);
    const TensorId out = linear("attention.projection", core, c_.hidden);
    return residual("attention.residual", out, x);
  }

  /// Turns by position; `dims` of the input are those of the output.
  TensorId rotary(const std::string& name, TensorId x, const std::string& dims) {
    const TensorId y = activation(name + ".out", build_[x].shape);
    build_.add(OpKind::rotary, name, dims + " -> " + dims, {x}, {y});
    return y;
  }

  TensorId repeat(const std::string& name, TensorId x) {
    std::vector<std::int64_t> shape = build_[x].shape;
    shape.back() *= c_.heads / c_.kv_heads;
    const TensorId y = activation(name + ".out", shape);
    build_.add(OpKind::repeat, name, "b s g d^ -> b s g e^", {x}, {y});
    return y;
  }

  TensorId fused_core(TensorId qkv) {
    const std::int64_t head = c_.hidden / c_.heads;
    const std::int64_t shared = c_.heads / c_.kv_heads;
    const std::vector<std::int64_t> keys = {c_.batch, c_.sequence, c_.kv_heads, head};
    const TensorId q =
        activation("attention.q", {c_.batch, c_.sequence, c_.kv_heads, shared * head});
    TensorId k = activation("attention.k", keys);
    TensorId v = activation("attention.v", keys);
    build_.add(OpKind::split_heads, "attention.split_heads",
               "b s (g a^) -> b s g e^, b s g d^, b s g d^", {qkv}, {q, k, v});
    const TensorId turned = rotary("attention.rotary_q", q, "b s g e^");
    k = rotary("attention.rotary_k", k, "b s g d^");
    if (c_.repeats_keys) {
      k = repeat("attention.repeat_k", k);
      v = repeat("attention.repeat_v", v);
    }
    return fused_attention(build_, "attention.core", turned, k, v, c_.heads);
  }

  TensorId core_in_parts(TensorId qkv) {
    const std::int64_t head = c_.hidden / c_.heads;
    const std::int64_t shared = c_.heads / c_.kv_heads;
    const std::vector<std::int64_t> queries = {c_.batch, c_.kv_heads, shared, c_.sequence, head};
    const std::vector<std::int64_t> keys = {c_.batch, c_.kv_heads, c_.sequence, head};
    const std::vector<std::int64_t> square = {c_.batch, c_.kv_heads, shared, c_.sequence,
                                              c_.prefix + c_.sequence};
    const TensorId q = activation("attention.q", queries);
    const TensorId k = activation("attention.k", keys);
    const TensorId v = activation("attention.v", keys);
    build_.add(OpKind::split_heads, "attention.split_heads",
               "b s (g a^) -> b g q^ s d^, b g s d^, b g s d^", {qkv}, {q, k, v});
    const TensorId turned = rotary("attention.rotary_q", q, "b g q^ s d^");
    const TensorId keys_turned = rotary("attention.rotary_k", k, "b g s d^");
    const TensorId scores = activation("attention.scores", square);
    build_.add(OpKind::contraction, "attention.scores", "b g q s d+, b g t d+ -> b g q s t",
               {turned, with_prefix(build_, "keys", keys_turned, c_.prefix, "g")}, {scores});
    const TensorId probabilities = activation("attention.probabilities", square);
    build_.add(OpKind::masked_softmax, "attention.softmax", "b g q s t^ -> b g q s t^", {scores},
               {probabilities});
    const TensorId context = activation("attention.context", queries);
    build_.add(OpKind::contraction, "attention.context", "b g q s t+, b g t d -> b g q s d",
               {probabilities, with_prefix(build_, "values", v, c_.prefix, "g")}, {context});
    const TensorId merged = states("attention.merged", c_.hidden);
    build_.add(OpKind::merge_heads, "attention.merge_heads", "b g q^ s d^ -> b s (g e^)", {context},
               {merged});
    return merged;
  }

  TensorId feed_forward(TensorId x, std::int64_t layer) {
    const TensorId y =
        model::feed_forward(build_, norm("mlp_norm", x), layer, c_.experts, mlp_of(c_));
    return residual("mlp.residual", y, x);
  }

  TensorId head(TensorId x) {
    build_.begin_segment("head");
    const TensorId y = norm("final_norm", x);
    const TensorId table =
        c_.tied ? word_table_
                : build_.parameter("logits.weight", {c_.vocabulary, c_.hidden}, c_.type);
    const TensorId logits = states("logits", c_.vocabulary);
    build_.add(OpKind::contraction, "logits", "b s k+, vocabulary k+ -> b s vocabulary", {y, table},
               {logits});
    return c_.fused.loss ? fused_cross_entropy(build_, logits, "b s", "vocabulary")
                         : cross_entropy(build_, logits, "b s", "vocabulary");
  }

  const LlamaConfig& c_;
  Builder build_;
  TensorId word_table_ = -1;
};

}  // namespace

Graph llama(const LlamaConfig& config) {
  expects(config.prefix == 0 || !config.fused.attention, "a fused attention knows no prefix");
  Graph graph = Llama(config).build();
  if (config.prefix > 0) graph = train_prefixes_only(std::move(graph));
  graph.sample_tokens = config.sequence;
  return graph;
}

namespace {

void complete_llama(LlamaConfig& c, const JsonReader& config) {
  if (c.hidden % c.heads != 0)
    config.at("heads").fail("a divisor of hidden, " + std::to_string(c.hidden));
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.heads % c.kv_heads != 0)
    config.at("kv_heads").fail("a divisor of heads, " + std::to_string(c.heads));
  if (c.repeats_keys && !c.fused.attention)
    config.at("repeat_keys").fail("false with unfused attention, whose products share keys");
  check_experts(config, c.experts, c.layers);
  check_prefix(config, c.fused.attention);
}

}  // namespace

Family llama_family() {
  using C = LlamaConfig;
  using F = LlamaFusions;
  const auto of_fused = [](bool F::*member) { return within(&C::fused, member); };
  const auto size = whole(1, 10'000'000);
  const auto fused = choice<bool>({{"unfused", false}, {"fused", true}});
  return family_of<C>(
      "llama", "Llama 1 to 3, Mixtral: RMS norms, rotary positions, gated MLPs",
      with_experts<C>(
          {{"layers", &C::layers, whole(1, 10'000), "layers", must_be_there},
           {"hidden", &C::hidden, size, "hidden size", must_be_there},
           {"heads", &C::heads, size, "heads of every attention; divides `hidden`", must_be_there},
           {"intermediate", &C::intermediate, size, "width of the MLP, and of experts",
            must_be_there},
           {"sequence", &C::sequence, size, "tokens of a sample", must_be_there},
           {"vocabulary", &C::vocabulary, size, "entries of the table, as padded for the run",
            must_be_there},
           {"kv_heads", &C::kv_heads, size,
            "keys and values, each shared by `heads` / `kv_heads` queries; more tensor ranks are "
            "refused",
            "`heads`"},
           {"tied", &C::tied, flag(), "logits use the word embedding, or a table of their own"},
           fused_attention_option<C>(of_fused(&F::attention)),
           {"repeat_keys", &C::repeats_keys, flag(),
            "keys and values are copied for every query before a fused attention, as some "
            "frameworks "
            "do"},
           {"swiglu", of_fused(&F::swiglu), fused,
            "one kernel that keeps both halves of its input, or silu and product, which keep a "
            "tensor "
            "more"},
           {"loss", of_fused(&F::loss), fused,
            "exponentials of the logits are kept in fp32, or the loss leaves the gradient of the "
            "logits in their own type (Transformer Engine)"},
           prefix_option(&C::prefix)}),
      &complete_llama, &llama);
}

}  // namespace stratagem::model

// Builds the T5 graph from its configuration.
#include "model/zoo/t5.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/builder.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/cross_entropy.hpp"
#include "model/zoo/dropout.hpp"
#include "model/zoo/mlp.hpp"
#include "model/zoo/norm.hpp"
#include "model/zoo/transformer.hpp"
#include "model/zoo/transformer_options.hpp"

namespace stratagem::model {
namespace {

std::int64_t head_width_of(const T5Config& c) {
  return c.head_width > 0 ? c.head_width : c.hidden / c.heads;
}
std::int64_t inner_width_of(const T5Config& c) { return c.heads * head_width_of(c); }

/// Encoder or decoder: how long its sequence is, and how its tokens see each other.
struct Stack {
  std::int64_t sequence = 0;
  bool causal = false;
  TensorId biases = -1;  ///< table by bucket and head; made by the first layer
};

/// Queries, keys and values of every head: (batch, heads, sequence, width).
struct Heads {
  TensorId queries = -1, keys = -1, values = -1;
};

class T5 {
 public:
  explicit T5(const T5Config& config) : c_(config), build_("t5") {}

  Graph build() && {
    build_.begin_segment("embedding");
    word_table_ = build_.parameter("words", {c_.vocabulary, c_.hidden}, c_.type);
    if (megatron())
      position_table_ = build_.parameter(
          "positions", {std::max(c_.sequence, c_.decoder_sequence), c_.hidden}, c_.type);
    const TensorId encoded = encoder(embedded("tokens", c_.sequence));
    return std::move(build_).finish(head(decoder(encoded)));
  }

 private:
  TensorId activation(const std::string& name, std::vector<std::int64_t> shape) {
    return build_.tensor(name, std::move(shape), c_.type, Role::activation);
  }
  [[nodiscard]] bool megatron() const { return c_.variant.kind == T5Kind::megatron; }

  /// Of `width` numbers for every token, as many tokens as x has.
  TensorId states(const std::string& name, TensorId x, std::int64_t width) {
    return activation(name, {c_.batch, build_[x].shape[1], width});
  }

  TensorId embedded(const std::string& name, std::int64_t sequence) {
    const TensorId tokens = build_.tensor(name, {c_.batch, sequence}, DataType::int64, Role::input);
    const TensorId words = activation(name + ".rows", {c_.batch, sequence, c_.hidden});
    build_.add(OpKind::embedding, name + ".lookup", "b s, vocabulary+ h -> b s h",
               {tokens, word_table_}, {words});
    return dropout(name + ".dropout", megatron() ? placed(name, words) : words, "b s h");
  }

  /// Adds the rows of the tokens' positions.
  TensorId placed(const std::string& name, TensorId words) {
    const std::vector<std::int64_t> shape = build_[words].shape;
    const TensorId positions =
        build_.tensor(name + ".positions", {shape[0], shape[1]}, DataType::int64, Role::input);
    const TensorId rows = activation(name + ".position_rows", shape);
    build_.add(OpKind::embedding, name + ".positions.lookup", "b s, positions^ h -> b s h",
               {positions, position_table_}, {rows});
    const TensorId sum = activation(name + ".placed", shape);
    build_.add(OpKind::add, name + ".add_positions", "b s h, b s h -> b s h", {words, rows}, {sum});
    return sum;
  }

  TensorId encoder(TensorId x) {
    Stack stack{.sequence = c_.sequence};
    for (std::int64_t layer = 0; layer < c_.layers; ++layer) {
      build_.begin_segment("encoder." + std::to_string(layer));
      x = feed_forward(self_attention(stack, x));
    }
    return normed_last(x);
  }

  TensorId normed_last(TensorId x) {
    const TensorId y = norm("final_norm", x);
    return megatron() ? y : dropout("final_dropout", y, "b s h");
  }

  TensorId decoder(TensorId encoded) {
    Stack stack{.sequence = c_.decoder_sequence, .causal = true};
    build_.begin_segment("decoder.embedding");
    TensorId x = embedded("tokens", c_.decoder_sequence);
    for (std::int64_t layer = 0; layer < c_.decoder_layers; ++layer) {
      build_.begin_segment("decoder." + std::to_string(layer));
      x = self_attention(stack, x);
      x = feed_forward(cross_attention(encoded, x));
      if (layer + 1 < c_.decoder_layers) encoded = handed_on(encoded);
    }
    return x;
  }

  /// A border: what the next layer reads is a tensor of this one.
  TensorId handed_on(TensorId encoded) {
    const TensorId y = states("encoded.out", encoded, c_.hidden);
    build_.add(OpKind::identity, "encoded", "b s h -> b s h", {encoded}, {y});
    return y;
  }

  TensorId norm(const std::string& name, TensorId x) {
    return model::norm(build_, megatron() ? OpKind::layer_norm : OpKind::rms_norm, name, x);
  }

  TensorId linear(const std::string& name, TensorId x, std::int64_t out) {
    return model::linear(build_, tokens(c_.batch, build_[x].shape[1]), name, x, out,
                         megatron() ? Bias::added : Bias::none);
  }

  TensorId dropout(const std::string& name, TensorId x, const std::string& dims,
                   OpKind kind = OpKind::dropout) {
    return c_.dropout ? model::dropout(build_, name, x, dims, kind) : x;
  }

  TensorId residual(const std::string& name, TensorId branch, TensorId x) {
    const TensorId sum = states(name + ".out", x, c_.hidden);
    build_.add(OpKind::add, name + ".residual", "b s h, b s h -> b s h",
               {dropout(name + ".output_dropout", branch, "b s h"), x}, {sum});
    return sum;
  }

  /// Cuts a matrix's result into so many tensors of heads.
  std::vector<TensorId> heads_of(const std::string& name, TensorId x,
                                 const std::vector<std::string>& parts) {
    const std::int64_t width = head_width_of(c_);
    std::vector<TensorId> heads;
    std::string annotation;
    for (const std::string& part : parts) {
      heads.push_back(activation(part + ".heads", {c_.batch, c_.heads, build_[x].shape[1], width}));
      annotation += (annotation.empty() ? "b s (heads e^) -> " : ", ");
      annotation += "b heads s d^";
    }
    build_.add(OpKind::split_heads, name, annotation, {x}, heads);
    return heads;
  }

  TensorId self_attention(Stack& stack, TensorId x) {
    const std::int64_t inner = inner_width_of(c_);
    const TensorId qkv = linear("attention.qkv", norm("attention_norm", x), 3 * inner);
    const std::vector<TensorId> heads =
        heads_of("attention.split_heads", qkv, {"attention.q", "attention.k", "attention.v"});
    const TensorId merged =
        core("attention", {heads[0], heads[1], heads[2]}, softmax_of(stack.causal),
             c_.bias_buckets > 0 ? biases(stack) : -1);
    return residual("attention", linear("attention.projection", merged, c_.hidden), x);
  }

  [[nodiscard]] OpKind softmax_of(bool causal) const {
    if (megatron()) return causal ? OpKind::masked_softmax : OpKind::scaled_softmax;
    return causal ? OpKind::causal_softmax : OpKind::softmax;
  }

  TensorId cross_attention(TensorId encoded, TensorId x) {
    const std::int64_t inner = inner_width_of(c_);
    const TensorId q = linear("cross.q", norm("cross_norm", x), inner);
    const std::vector<TensorId> queries = heads_of("cross.split_queries", q, {"cross.q"});
    const TensorId kv = linear("cross.kv", encoded, 2 * inner);
    const std::vector<TensorId> keys = heads_of("cross.split_keys", kv, {"cross.k", "cross.v"});
    const TensorId merged = core("cross", {queries[0], keys[0], keys[1]}, softmax_of(false), -1);
    return residual("cross", linear("cross.projection", merged, c_.hidden), x);
  }

  /// Of a stack's table, for all pairs of its tokens.
  TensorId biases(Stack& stack) {
    if (stack.biases < 0)
      stack.biases = build_.parameter("attention.biases", {c_.bias_buckets, c_.heads}, c_.type);
    const TensorId bias =
        activation("attention.bias.out", {c_.heads, stack.sequence, stack.sequence});
    build_.add(stack.causal ? OpKind::causal_relative_bias : OpKind::relative_bias,
               "attention.bias", "buckets^ heads -> heads s t", {stack.biases}, {bias});
    return bias;
  }

  TensorId scores(const std::string& name, const Heads& heads, TensorId bias) {
    const std::vector<std::int64_t> pairs = {c_.batch, c_.heads, build_[heads.queries].shape[2],
                                             build_[heads.keys].shape[2]};
    const TensorId products = activation(name + ".scores", pairs);
    build_.add(OpKind::contraction, name + ".scores", "b heads s d+, b heads t d+ -> b heads s t",
               {heads.queries, heads.keys}, {products});
    if (bias < 0) return products;
    const TensorId biased = activation(name + ".biased", pairs);
    build_.add(OpKind::add, name + ".add_bias", "b heads s t, heads s t -> b heads s t",
               {products, bias}, {biased});
    return biased;
  }

  /// From heads to a row of all heads for every query.
  TensorId core(const std::string& name, const Heads& heads, OpKind softmax, TensorId bias) {
    const TensorId weights = scores(name, heads, bias);
    const TensorId probabilities = activation(name + ".probabilities", build_[weights].shape);
    build_.add(softmax, name + ".softmax", "b heads s t^ -> b heads s t^", {weights},
               {probabilities});
    const TensorId kept =
        dropout(name + ".dropout", probabilities, "b heads s t", OpKind::attention_dropout);
    const std::vector<std::int64_t> shape = build_[heads.queries].shape;
    const TensorId context = activation(name + ".context", shape);
    build_.add(OpKind::contraction, name + ".context", "b heads s t+, b heads t d -> b heads s d",
               {kept, heads.values}, {context});
    const TensorId merged = activation(name + ".merged", {c_.batch, shape[2], inner_width_of(c_)});
    build_.add(OpKind::merge_heads, name + ".merge_heads", "b heads s d^ -> b s (heads d^)",
               {context}, {merged});
    return merged;
  }

  TensorId feed_forward(TensorId x) {
    const TensorId normed = norm("mlp_norm", x);
    const OpKind plain = c_.variant.mlp == T5Mlp::relu ? OpKind::relu : OpKind::gelu;
    const TensorId bent =
        c_.variant.mlp == T5Mlp::gated_gelu ? gate(normed) : bend(plain, normed, "mlp.fc1");
    const TensorId kept = megatron() ? bent : dropout("mlp.dropout", bent, "b s n");
    return residual("mlp", linear("mlp.fc2", kept, c_.hidden), x);
  }

  TensorId bend(OpKind kind, TensorId x, const std::string& matrix) {
    const TensorId up = linear(matrix, x, c_.intermediate);
    const TensorId bent = states("mlp." + to_text(kind) + ".out", x, c_.intermediate);
    build_.add(kind, "mlp." + to_text(kind), "b s n -> b s n", {up}, {bent});
    return bent;
  }

  TensorId gate(TensorId x) {
    const TensorId bent = bend(OpKind::gelu, x, "mlp.gate");
    const TensorId up = linear("mlp.fc1", x, c_.intermediate);
    const TensorId gated = states("mlp.gated.out", x, c_.intermediate);
    build_.add(OpKind::multiply, "mlp.gated", "b s n, b s n -> b s n", {bent, up}, {gated});
    return gated;
  }

  TensorId head(TensorId x) {
    build_.begin_segment("head");
    const TensorId table =
        c_.tied ? word_table_
                : build_.parameter("logits.weight", {c_.vocabulary, c_.hidden}, c_.type);
    const TensorId all = logits(build_, normed_last(x), table);
    const bool biased = megatron() && c_.tied;
    return cross_entropy(build_, biased ? with_bias(build_, all) : all, "b s", "vocabulary");
  }

  const T5Config& c_;
  Builder build_;
  TensorId word_table_ = -1;
  TensorId position_table_ = -1;  ///< Megatron-LM's, of both sequences
};

}  // namespace

Graph t5(const T5Config& config) {
  Graph graph = T5(config).build();
  graph.sample_tokens = config.sequence + config.decoder_sequence;
  return graph;
}

namespace {

void complete_t5(T5Config& c, const JsonReader& config) {
  check_heads(config, c);
  if (c.bias_buckets % 4 != 0)
    config.at("bias_buckets").fail("a multiple of 4 (0: no biases by distance)");
  if (c.variant.kind == T5Kind::published) return;
  if (!config.has("activation")) c.variant.mlp = T5Mlp::gelu;
  if (const auto buckets = config.find("bias_buckets"); buckets && c.bias_buckets > 0)
    buckets->fail("0: Megatron-LM's T5 has learned positions");
  c.bias_buckets = 0;
}

}  // namespace

Family t5_family() {
  using C = T5Config;
  const auto of_variant = [](auto T5Variant::*member) { return within(&C::variant, member); };
  const auto size = whole(1, 10'000'000);
  return family_of<C>(
      "t5",
      "T5's encoder and decoder, as published (RMS norms, biases by distance) or as Megatron-LM's",
      {{"layers", &C::layers, whole(1, 10'000), "layers of the encoder", must_be_there},
       {"decoder_layers", &C::decoder_layers, whole(1, 10'000),
        "layers of the decoder; stages of a pipeline count both as one row, the encoder's first",
        must_be_there},
       {"hidden", &C::hidden, size, "hidden size", must_be_there},
       {"heads", &C::heads, size,
        "heads of every attention; divides `hidden` where there is no `head_width`", must_be_there},
       {"intermediate", &C::intermediate, size, "width of the MLP", must_be_there},
       {"sequence", &C::sequence, size, "tokens of a sample in the encoder", must_be_there},
       {"decoder_sequence", &C::decoder_sequence, size, "tokens of a sample in the decoder",
        must_be_there},
       {"vocabulary", &C::vocabulary, size, "entries of the table, as padded for the run",
        must_be_there},
       {"head_width", &C::head_width, size, "width of a head", "`hidden` / `heads`"},
       {"kind", of_variant(&T5Variant::kind),
        choice<T5Kind>({{"published", T5Kind::published}, {"megatron", T5Kind::megatron}}),
        "as published, or Megatron-LM's: layer norms, biases, learned positions, scaled scores"},
       {"activation", of_variant(&T5Variant::mlp),
        choice<T5Mlp>(
            {{"relu", T5Mlp::relu}, {"gelu", T5Mlp::gelu}, {"gated-gelu", T5Mlp::gated_gelu}}),
        "of the MLP: T5, Megatron-LM's T5, T5 1.1", "relu; gelu if `kind` is `megatron`"},
       {"tied", &C::tied, flag(),
        "logits use the word embedding, or a table of their own (T5 1.1); the decoder's embedding "
        "is the encoder's"},
       {"dropout", &C::dropout, flag(), "as in T5, or nowhere"},
       {"bias_buckets", &C::bias_buckets, whole(0, 252),
        "distances between tokens, each with a learned bias of every head's scores; a multiple of "
        "4, 0 for none"}},
      &complete_t5, &t5);
}

}  // namespace stratagem::model

// Builds the graph of a decoder-only transformer.
#include "model/zoo/decoder.hpp"

#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "model/builder.hpp"
#include "model/zoo/cross_entropy.hpp"
#include "model/zoo/dropout.hpp"
#include "model/zoo/fused_attention.hpp"
#include "model/zoo/prefix.hpp"

namespace stratagem::model {
namespace {

/// What a norm works on, in the names of an annotation: each row of `rows` is normalised along
/// `width`. Queries that share a key lie in one dimension: "b s g (q^ d^)", rows "b s g q^".
struct NormedRows {
  std::string dims = "b s h^";
  std::string width = "h^";
  std::string rows = "b s";
  std::vector<std::int64_t> shape;  ///< of the rows
};

/// Names of dimensions of queries, keys and values in annotations.
struct HeadDims {
  std::string divided;        ///< what ranks divide: "heads", or "g" where queries share keys
  std::string queries;        ///< one query of the scores: "heads", or "g q"
  std::string whole_queries;  ///< the same where no rank may divide q: "heads", or "g q^"
  std::string together;       ///< all queries of one "heads" or "g" side by side: "d^", or "e^"
};

HeadDims dims_of(const Attention& attention) {
  if (attention.kv_heads == 0)
    return {.divided = "heads", .queries = "heads", .whole_queries = "heads", .together = "d^"};
  return {.divided = "g", .queries = "g q", .whole_queries = "g q^", .together = "e^"};
}

class Decoder {
 public:
  explicit Decoder(const DecoderConfig& config)
      : c_(config),
        groups_(config.attention.kv_heads > 0 ? config.attention.kv_heads : config.attention.heads),
        shared_(config.attention.heads / groups_),
        width_(config.hidden / config.attention.heads),
        dims_(dims_of(config.attention)),
        build_(config.name) {}

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
    const bool learned = c_.positions == Positions::learned;
    const TensorId position_table =
        learned ? build_.parameter("positions", {c_.sequence, c_.hidden}, c_.type) : -1;
    TensorId x = states("word_rows", c_.hidden);
    build_.add(OpKind::embedding, "lookup", "b s, vocabulary+ h -> b s h", {tokens, word_table_},
               {x});
    if (learned) {
      const TensorId placed = states("placed", c_.hidden);
      build_.add(OpKind::add, "add_positions", "b s h, s h -> b s h", {x, position_table},
                 {placed});
      x = placed;
    }
    return dropout("dropout", x, "b s h");
  }

  TensorId norm(const std::string& name, TensorId x) {
    return norm(name, x, c_.hidden, {.shape = {c_.batch, c_.sequence}});
  }

  /// Layer norms have a scale and a shift, and keep mean and reciprocal deviation of every row in
  /// fp32; RMS norms have a scale, and keep the reciprocal root mean square.
  TensorId norm(const std::string& name, TensorId x, std::int64_t width, const NormedRows& of) {
    const bool centred = c_.norm == OpKind::layer_norm;
    std::vector<TensorId> operands = {x, build_.parameter(name + ".scale", {width}, c_.type)};
    if (centred) operands.push_back(build_.parameter(name + ".shift", {width}, c_.type));
    const TensorId y = activation(name + ".out", build_[x].shape);
    std::vector<std::int64_t> kept = of.shape;
    kept.push_back(centred ? 2 : 1);
    const TensorId statistics =
        build_.tensor(name + ".statistics", kept, DataType::fp32, Role::statistic);
    std::string annotation = of.dims + ", " + of.width;
    if (centred) annotation += ", " + of.width;
    annotation += " -> " + of.dims + ", " + of.rows + (centred ? " two^" : " one^");
    build_.add(c_.norm, name, annotation, operands, {y, statistics});
    return y;
  }

  TensorId linear(const std::string& name, TensorId x, std::int64_t out) {
    return model::linear(build_, tokens(c_.batch, c_.sequence), name, x, out, c_.bias);
  }

  TensorId dropout(const std::string& name, TensorId x, const std::string& dims,
                   OpKind kind = OpKind::dropout) {
    return c_.dropout ? model::dropout(build_, name, x, dims, kind) : x;
  }

  TensorId residual(const std::string& name, TensorId branch, TensorId x) {
    const TensorId sum = states(name + ".out", c_.hidden);
    build_.add(OpKind::add, name, "b s h, b s h -> b s h", {branch, x}, {sum});
    return sum;
  }

  TensorId attention(TensorId x) {
    const std::int64_t columns = (shared_ + 2) * groups_ * width_;
    const TensorId qkv = linear("attention.qkv", norm("input_norm", x), columns);
    const TensorId core = c_.attention.fused ? fused_core(qkv) : core_in_parts(qkv);
    const TensorId out = linear("attention.projection", core, c_.hidden);
    return residual("attention.residual", dropout("attention.output_dropout", out, "b s h"), x);
  }

  /// Turns by position; `dims` of the input are those of the output.
  TensorId rotary(const std::string& name, TensorId x, const std::string& dims) {
    if (c_.positions != Positions::rotary) return x;
    const TensorId y = activation(name + ".out", build_[x].shape);
    build_.add(OpKind::rotary, name, dims + " -> " + dims, {x}, {y});
    return y;
  }

  /// The norm of queries or keys over the width of a head.
  TensorId head_norm(const std::string& name, TensorId x, NormedRows of) {
    if (!c_.attention.norms) return x;
    of.width = "d^";
    return norm(name, x, width_, of);
  }

  TensorId repeat(const std::string& name, TensorId x) {
    if (!c_.attention.repeats_keys) return x;
    std::vector<std::int64_t> shape = build_[x].shape;
    shape.back() *= shared_;
    const TensorId y = activation(name + ".out", shape);
    build_.add(OpKind::repeat, name, "b s g d^ -> b s g e^", {x}, {y});
    return y;
  }

  TensorId fused_core(TensorId qkv) {
    const std::string& g = dims_.divided;
    const std::vector<std::int64_t> keys = {c_.batch, c_.sequence, groups_, width_};
    TensorId q = activation("attention.q", {c_.batch, c_.sequence, groups_, shared_ * width_});
    TensorId k = activation("attention.k", keys);
    TensorId v = activation("attention.v", keys);
    const std::string of_queries = "b s " + g + " " + dims_.together;
    const std::string of_keys = "b s " + g + " d^";
    build_.add(OpKind::split_heads, "attention.split_heads",
               "b s (" + g + " a^) -> " + of_queries + ", " + of_keys + ", " + of_keys, {qkv},
               {q, k, v});
    const bool grouped = c_.attention.kv_heads > 0;
    q = head_norm("attention.q_norm", q,
                  {.dims = grouped ? "b s g (q^ d^)" : of_queries,
                   .rows = "b s " + dims_.whole_queries,
                   .shape = grouped ? std::vector{c_.batch, c_.sequence, groups_, shared_}
                                    : std::vector{c_.batch, c_.sequence, groups_}});
    k = head_norm("attention.k_norm", k,
                  {.dims = of_keys, .rows = "b s " + g, .shape = {c_.batch, c_.sequence, groups_}});
    q = rotary("attention.rotary_q", q, of_queries);
    k = repeat("attention.repeat_k", rotary("attention.rotary_k", k, of_keys));
    v = repeat("attention.repeat_v", v);
    return fused_attention(build_, "attention.core", q, k, v, c_.attention.heads);
  }

  /// Queries, keys and values by heads, positions in them; a prefix stands before keys and values.
  struct Heads {
    TensorId queries;
    TensorId keys;
    TensorId values;
  };
  Heads heads_in_parts(TensorId qkv) {
    const std::string& g = dims_.divided;
    const std::string of_queries = "b " + dims_.whole_queries + " s d^",
                      of_keys = "b " + g + " s d^";
    const std::vector<std::int64_t> keys = {c_.batch, groups_, c_.sequence, width_};
    TensorId q = activation("attention.q", of_each_query(width_));
    TensorId k = activation("attention.k", keys);
    TensorId v = activation("attention.v", keys);
    build_.add(OpKind::split_heads, "attention.split_heads",
               "b s (" + g + " a^) -> " + of_queries + ", " + of_keys + ", " + of_keys, {qkv},
               {q, k, v});
    std::vector<std::int64_t> rows = build_[q].shape;
    rows.pop_back();
    q = head_norm("attention.q_norm", q,
                  {.dims = of_queries, .rows = "b " + dims_.whole_queries + " s", .shape = rows});
    k = head_norm(
        "attention.k_norm", k,
        {.dims = of_keys, .rows = "b " + g + " s", .shape = {c_.batch, groups_, c_.sequence}});
    q = rotary("attention.rotary_q", q, of_queries);
    k = rotary("attention.rotary_k", k, of_keys);
    return {q, with_prefix(build_, "keys", k, c_.attention.prefix, g),
            with_prefix(build_, "values", v, c_.attention.prefix, g)};
  }

  /// Numbers for every query of every head.
  [[nodiscard]] std::vector<std::int64_t> of_each_query(std::int64_t numbers) const {
    if (c_.attention.kv_heads == 0) return {c_.batch, groups_, c_.sequence, numbers};
    return {c_.batch, groups_, shared_, c_.sequence, numbers};
  }

  TensorId core_in_parts(TensorId qkv) {
    const auto [q, k, v] = heads_in_parts(qkv);
    const std::string queries = "b " + dims_.queries + " s ", keys = "b " + dims_.divided + " t ";
    const std::vector<std::int64_t> square = of_each_query(c_.attention.prefix + c_.sequence);
    const TensorId scores = activation("attention.scores", square);
    build_.add(OpKind::contraction, "attention.scores",
               queries + "d+, " + keys + "d+ -> " + queries + "t", {q, k}, {scores});
    const TensorId probabilities = activation("attention.probabilities", square);
    build_.add(OpKind::masked_softmax, "attention.softmax", queries + "t^ -> " + queries + "t^",
               {scores}, {probabilities});
    const TensorId kept =
        dropout("attention.dropout", probabilities, queries + "t", OpKind::attention_dropout);
    const TensorId context = activation("attention.context", of_each_query(width_));
    build_.add(OpKind::contraction, "attention.context",
               queries + "t+, " + keys + "d -> " + queries + "d", {kept, v}, {context});
    const TensorId merged = states("attention.merged", c_.hidden);
    build_.add(
        OpKind::merge_heads, "attention.merge_heads",
        "b " + dims_.whole_queries + " s d^ -> b s (" + dims_.divided + " " + dims_.together + ")",
        {context}, {merged});
    return merged;
  }

  TensorId feed_forward(TensorId x, std::int64_t layer) {
    const TensorId y = model::feed_forward(build_, norm("mlp_norm", x), layer, c_.experts, c_.mlp);
    return residual("mlp.residual", dropout("mlp.dropout", y, "b s h"), x);
  }

  TensorId head(TensorId x) {
    build_.begin_segment("head");
    const TensorId y = norm("final_norm", x);
    const TensorId table =
        c_.head.tied ? word_table_
                     : build_.parameter("logits.weight", {c_.vocabulary, c_.hidden}, c_.type);
    const TensorId logits = states("logits", c_.vocabulary);
    build_.add(OpKind::contraction, "logits", "b s k+, vocabulary k+ -> b s vocabulary", {y, table},
               {logits});
    return c_.head.fused_loss ? fused_cross_entropy(build_, logits, "b s", "vocabulary")
                              : cross_entropy(build_, logits, "b s", "vocabulary");
  }

  const DecoderConfig& c_;
  std::int64_t groups_;  ///< keys and values
  std::int64_t shared_;  ///< queries of each
  std::int64_t width_;   ///< of a head
  HeadDims dims_;
  Builder build_;
  TensorId word_table_ = -1;
};

}  // namespace

Graph decoder(const DecoderConfig& config) {
  const Attention& attention = config.attention;
  expects(attention.prefix == 0 || !attention.fused, "a fused attention knows no prefix");
  Graph graph = Decoder(config).build();
  if (attention.prefix > 0) graph = train_prefixes_only(std::move(graph));
  graph.sample_tokens = config.sequence;
  return graph;
}

}  // namespace stratagem::model

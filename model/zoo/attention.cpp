// Builds attention from the rows of tokens to the rows of tokens.
#include "model/zoo/attention.hpp"

#include <string>
#include <utility>
#include <vector>

#include "model/zoo/dropout.hpp"
#include "model/zoo/fused_attention.hpp"
#include "model/zoo/latent_attention.hpp"
#include "model/zoo/norm.hpp"
#include "model/zoo/prefix.hpp"

namespace stratagem::model {
namespace {

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

class SelfAttention {
 public:
  SelfAttention(Builder& build, const TransformerConfig& config, const OnScores& on_scores)
      : build_(build),
        c_(config),
        on_scores_(on_scores),
        groups_(config.attention.kv_heads > 0 ? config.attention.kv_heads : config.attention.heads),
        shared_(config.attention.heads / groups_),
        width_(config.head_width()),
        dims_(dims_of(config.attention)) {}

  TensorId of(TensorId x, std::int64_t layer) {
    const CoreInputs heads = c_.attention.latent.key_rank > 0 ? latent_heads(build_, c_, x)
                             : c_.attention.fused             ? heads_in_rows(projected(x))
                                                              : heads_in_parts(projected(x));
    const TensorId core =
        c_.attention.cache.room > 0 ? cached_attention(build_, "attention.core", heads,
                                                       c_.attention.heads, c_.attention.cache)
        : c_.attention.fused ? fused_attention(build_, "attention.core", heads, c_.attention.heads,
                                               c_.attention.sight.of_layer(layer))
                             : core_in_parts(heads);
    return projection("attention.projection", core, c_.hidden);
  }

 private:
  TensorId activation(const std::string& name, std::vector<std::int64_t> shape) {
    return build_.tensor(name, std::move(shape), c_.type, Role::activation);
  }
  TensorId projected(TensorId x) {
    return projection("attention.qkv", x, (shared_ + 2) * groups_ * width_);
  }
  TensorId projection(const std::string& name, TensorId x, std::int64_t out) {
    return linear(build_, tokens(c_.batch, c_.sequence), name, x, out, c_.bias);
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
    of.size = width_;
    return norm(build_, c_.norm, name, x, of);
  }

  TensorId repeat(const std::string& name, TensorId x) {
    if (!c_.attention.repeats_keys) return x;
    std::vector<std::int64_t> shape = build_[x].shape;
    shape.back() *= shared_;
    const TensorId y = activation(name + ".out", shape);
    build_.add(OpKind::repeat, name, "b s g d^ -> b s g e^", {x}, {y});
    return y;
  }

  /// In the rows of tokens, as a fused core reads them.
  CoreInputs heads_in_rows(TensorId qkv) {
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
    return {q, k, repeat("attention.repeat_v", v)};
  }

  /// By heads, positions in them; a prefix stands before keys and values.
  CoreInputs heads_in_parts(TensorId qkv) {
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

  TensorId core_in_parts(const CoreInputs& heads) {
    const auto [q, k, v] = heads;
    const std::int64_t width = build_[v].shape.back();
    const std::string queries = "b " + dims_.queries + " s ", keys = "b " + dims_.divided + " t ";
    const std::vector<std::int64_t> square = of_each_query(c_.attention.prefix + c_.sequence);
    const TensorId products = activation("attention.scores", square);
    build_.add(OpKind::contraction, "attention.scores",
               queries + "d+, " + keys + "d+ -> " + queries + "t", {q, k}, {products});
    const TensorId scores = on_scores_ ? on_scores_(products, queries + "t") : products;
    const TensorId probabilities = activation("attention.probabilities", square);
    build_.add(c_.attention.sight.causal ? OpKind::masked_softmax : OpKind::scaled_softmax,
               "attention.softmax", queries + "t^ -> " + queries + "t^", {scores}, {probabilities});
    const TensorId kept = c_.dropout ? dropout(build_, "attention.dropout", probabilities,
                                               queries + "t", OpKind::attention_dropout)
                                     : probabilities;
    const TensorId context = activation("attention.context", of_each_query(width));
    build_.add(OpKind::contraction, "attention.context",
               queries + "t+, " + keys + "d -> " + queries + "d", {kept, v}, {context});
    const TensorId merged =
        activation("attention.merged", {c_.batch, c_.sequence, c_.attention.heads * width});
    build_.add(
        OpKind::merge_heads, "attention.merge_heads",
        "b " + dims_.whole_queries + " s d^ -> b s (" + dims_.divided + " " + dims_.together + ")",
        {context}, {merged});
    return merged;
  }

  Builder& build_;
  const TransformerConfig& c_;
  const OnScores& on_scores_;
  std::int64_t groups_;  ///< keys and values
  std::int64_t shared_;  ///< queries of each
  std::int64_t width_;   ///< of a head
  HeadDims dims_;
};

}  // namespace

TensorId self_attention(Builder& build, const TransformerConfig& config, TensorId x,
                        std::int64_t layer, const OnScores& on_scores) {
  return SelfAttention(build, config, on_scores).of(x, layer);
}

}  // namespace stratagem::model

// Builds the embeddings, layers and logits of a transformer.
#include "model/zoo/transformer.hpp"

#include <algorithm>
#include <vector>

#include "model/zoo/attention.hpp"
#include "model/zoo/dropout.hpp"
#include "model/zoo/norm.hpp"

namespace stratagem::model {
namespace {

class Layer {
 public:
  Layer(Builder& build, const TransformerConfig& config) : build_(build), c_(config) {}

  TensorId attention(TensorId x, std::int64_t layer) {
    const TensorId out = self_attention(build_, c_, before("input_norm", x), layer);
    const TensorId kept = dropped(build_, c_, "attention.output_dropout", out);
    return after("attention.norm", residual("attention.residual", kept, x));
  }

  TensorId feed_forward(TensorId x, std::int64_t layer) {
    const TensorId y =
        model::feed_forward(build_, before("mlp_norm", x), layer, c_.experts, c_.mlp);
    const TensorId kept = dropped(build_, c_, "mlp.dropout", y);
    return after("mlp.norm", residual("mlp.residual", kept, x));
  }

 private:
  TensorId before(const std::string& name, TensorId x) {
    return c_.norms == NormPlace::before ? norm(build_, c_.norm, name, x) : x;
  }
  TensorId after(const std::string& name, TensorId x) {
    return c_.norms == NormPlace::after ? norm(build_, c_.norm, name, x) : x;
  }

  TensorId residual(const std::string& name, TensorId branch, TensorId x) {
    const TensorId sum = build_.tensor(name + ".out", build_[x].shape, c_.type, Role::activation);
    build_.add(OpKind::add, name, "b s h, b s h -> b s h", {branch, x}, {sum});
    return sum;
  }

  Builder& build_;
  const TransformerConfig& c_;
};

/// Adds the rows of a table of positions. Where a cache holds earlier tokens, they are looked up.
TensorId with_positions(Builder& build, const TransformerConfig& c, TensorId x, TensorId table) {
  const std::vector<std::int64_t> shape = build[x].shape;
  const TensorId placed = build.tensor("placed", shape, c.type, Role::activation);
  if (build[table].shape.front() == c.sequence) {
    build.add(OpKind::add, "add_positions", "b s h, s h -> b s h", {x, table}, {placed});
    return placed;
  }
  const TensorId numbers =
      build.tensor("position_numbers", {c.batch, c.sequence}, DataType::int64, Role::input);
  const TensorId rows = build.tensor("position_rows", shape, c.type, Role::activation);
  build.add(OpKind::embedding, "lookup_positions", "b s, position^ h -> b s h", {numbers, table},
            {rows});
  build.add(OpKind::add, "add_positions", "b s h, b s h -> b s h", {x, rows}, {placed});
  return placed;
}

}  // namespace

Embedded embedded(Builder& build, const TransformerConfig& c) {
  const TensorId tokens =
      build.tensor("tokens", {c.batch, c.sequence}, DataType::int64, Role::input);
  Embedded result{.words = build.parameter("words", {c.vocabulary, c.hidden}, c.type), .rows = -1};
  const std::int64_t rows_of_table = std::max(c.sequence, c.attention.cache.room);
  const bool learned = c.positions == Positions::learned;
  const TensorId positions =
      learned ? build.parameter("positions", {rows_of_table, c.hidden}, c.type) : -1;
  result.rows =
      build.tensor("word_rows", {c.batch, c.sequence, c.hidden}, c.type, Role::activation);
  build.add(OpKind::embedding, "lookup", "b s, vocabulary+ h -> b s h", {tokens, result.words},
            {result.rows});
  if (learned) result.rows = with_positions(build, c, result.rows, positions);
  return result;
}

TensorId dropped(Builder& build, const TransformerConfig& c, const std::string& name, TensorId x) {
  return c.dropout ? dropout(build, name, x, "b s h") : x;
}

TensorId layers(Builder& build, const TransformerConfig& c, TensorId x) {
  Layer layer(build, c);
  for (std::int64_t number = 0; number < c.layers; ++number) {
    build.begin_segment("layers." + std::to_string(number));
    x = layer.feed_forward(layer.attention(x, number), number);
  }
  return x;
}

TensorId logits(Builder& build, TensorId x, TensorId words, const std::string& rows) {
  std::vector<std::int64_t> shape = build[x].shape;
  shape.back() = build[words].shape.front();
  const TensorId y = build.tensor("logits", shape, build[x].type, Role::activation);
  build.add(OpKind::contraction, "logits", rows + " k+, vocabulary k+ -> " + rows + " vocabulary",
            {x, words}, {y});
  return y;
}

TensorId with_bias(Builder& build, TensorId logits) {
  const std::vector<std::int64_t> shape = build[logits].shape;
  const DataType type = build[logits].type;
  const TensorId bias = build.parameter("logits.bias", {shape.back()}, type);
  const TensorId y = build.tensor("logits.out", shape, type, Role::activation);
  build.add(OpKind::bias_add, "logits.bias_add", "b s vocabulary, vocabulary -> b s vocabulary",
            {logits, bias}, {y});
  return y;
}

}  // namespace stratagem::model

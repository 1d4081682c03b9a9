// What a model reads: labels are the tokens that come next.
#include "execute/initial.hpp"

#include <algorithm>

#include "model/zoo/bert.hpp"
#include "model/zoo/gpt.hpp"
#include "model/zoo/t5.hpp"
#include "tests/catch.hpp"

namespace stratagem::execute::initial_test {
namespace {

std::vector<std::int64_t> numbers(const model::Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.tensors, name, &model::Tensor::name);
  REQUIRE(found != graph.tensors.end());
  const Region whole = all_of(placement::whole(found->shape));
  const auto tensor = static_cast<model::TensorId>(found - graph.tensors.begin());
  const Shared<float> value = input<float>(graph, tensor, whole, 7, 2, 1);
  return {value->numbers.begin(), value->numbers.end()};
}

/// Of every sample, of `length` tokens.
void check_next(const model::Graph& graph, const std::string& tokens, std::size_t length) {
  const std::vector<std::int64_t> read = numbers(graph, tokens);
  const std::vector<std::int64_t> labels = numbers(graph, "head.labels");
  REQUIRE(!read.empty());
  REQUIRE(read.size() == labels.size());
  for (std::size_t i = 0; i + 1 < read.size(); ++i) {
    if (i % length + 1 < length) CHECK(labels[i] == read[i + 1]);
  }
}

}  // namespace

TEST_CASE("labels are the next tokens, whatever else a model looks up") {
  check_next(
      model::gpt(
          {.layers = 1, .hidden = 8, .heads = 2, .sequence = 6, .vocabulary = 100, .batch = 3}),
      "embedding.tokens", 6);
  const model::Graph bert = model::bert(
      {.layers = 1, .hidden = 8, .heads = 2, .sequence = 6, .vocabulary = 100, .batch = 3});
  check_next(bert, "embedding.tokens", 6);
  CHECK(std::ranges::max(numbers(bert, "embedding.token_types")) == 1);
  for (const model::T5Kind kind : {model::T5Kind::published, model::T5Kind::megatron}) {
    model::T5Config config;
    config.layers = config.decoder_layers = 1;
    config.hidden = 8;
    config.heads = 2;
    config.intermediate = 16;
    config.sequence = 7;
    config.decoder_sequence = 5;
    config.vocabulary = 100;
    config.batch = 3;
    config.variant.kind = kind;
    config.bias_buckets = 0;
    check_next(model::t5(config), "decoder.embedding.tokens", 5);
  }
}

}  // namespace stratagem::execute::initial_test

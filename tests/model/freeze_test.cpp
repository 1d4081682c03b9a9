// Frozen parameters have no gradients, and nothing is computed for them.
#include "model/freeze.hpp"

#include <algorithm>

#include "model/zoo/gpt.hpp"
#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::model::freeze_test {
namespace {

constexpr GptConfig small{
    .layers = 3, .hidden = 8, .heads = 2, .sequence = 5, .vocabulary = 11, .batch = 2};

GptConfig prefixed(std::int64_t prefix) {
  GptConfig config = small;
  config.prefix = prefix;
  return config;
}

std::int64_t trained(const Graph& graph) {
  std::int64_t elements = 0;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Tensor& tensor = graph.tensors[id];
    if (tensor.role == Role::parameter && graph.gradient_of[id] >= 0)
      elements += element_count(tensor);
  }
  return elements;
}

std::int64_t count(const Graph& graph, Pass pass) {
  return std::ranges::count(graph.operators, pass, &Operator::pass);
}

TEST_CASE("freezing nothing changes nothing, freezing all leaves no backward pass") {
  const Graph graph = gpt(small);
  const Graph same = freeze(graph, [](const Tensor&) { return false; });
  CHECK(same.operators.size() == graph.operators.size());
  CHECK(trained(same) == parameter_count(graph));
  const Graph none = freeze(graph, [](const Tensor&) { return true; });
  CHECK_FALSE(trains_any(none));
  CHECK(count(none, Pass::forward) == static_cast<std::int64_t>(none.operators.size()));
  CHECK(parameter_count(none) == parameter_count(graph));
}

TEST_CASE("what was frozen before stays frozen") {
  const Graph first =
      freeze(gpt(small), [](const Tensor& t) { return t.name == "embedding.words"; });
  const Graph both = freeze(first, [](const Tensor& t) { return t.name == "embedding.positions"; });
  CHECK(trained(both) == parameter_count(both) - (11 + 5) * 8);
}

TEST_CASE("a prefix of P places is 2LPh parameters, and all that is trained") {
  const Graph graph = gpt(prefixed(3));
  CHECK(parameter_count(graph) == parameter_count(gpt(small)) + 2 * 3 * 3 * 8);
  CHECK(parameter_count(graph) == gpt_parameters(prefixed(3)));
  CHECK(trained(graph) == 2 * 3 * 3 * 8);
  CHECK(count(graph, Pass::optimizer) == 2 * 3);
  CHECK(count(graph, Pass::weight_gradient) == 2 * 3);  // none of a matrix, norm or table
  LlamaConfig llama_config{2, 8, 4, 2, 12, 5, 11, 2};
  llama_config.fused.attention = false;
  const std::int64_t without = parameter_count(llama(llama_config));
  llama_config.prefix = 3;  // of two keys of two numbers each
  CHECK(trained(llama(llama_config)) == 2 * 2 * 3 * 4);
  CHECK(llama_parameters(llama_config) == without + 2 * 2 * 3 * 4);
}

TEST_CASE("with a prefix no backward pass goes below the first layer's keys") {
  const Graph graph = gpt(prefixed(3));
  CHECK(graph.segments[0].backward.empty());
  for (const OpId id : graph.segments[1].backward)
    CHECK(graph.operators[id].name.find("qkv") == std::string::npos);
  // The second layer's gradient goes through its matrices to the first layer's prefix.
  CHECK(std::ranges::any_of(graph.segments[2].backward, [&](OpId id) {
    return graph.operators[id].name == "layers.1.attention.qkv.B";
  }));
}

TEST_CASE("products of a prefix-tuned step: no gradients of weights, more keys than queries") {
  const Graph graph = gpt(prefixed(3));
  Flops forward, backward;
  for (const Operator& op : graph.operators)
    (op.pass == Pass::forward ? forward : backward) += flops(graph, op);
  const double tokens = 2 * 5, layer = 12 * 8 * 8, pairs = tokens * (3 + 5) * 8, logits = 8 * 11;
  CHECK(close(forward, Flops{2 * (3 * (tokens * layer + 2 * pairs) + tokens * logits)}, 1e-12));
  // Back through logits and two layers whole; of the first layer all but QKV's 3h^2, and of its
  // scores the gradient of the keys alone, since its queries are of frozen tokens.
  const double back = tokens * logits + 3 * (tokens * layer + 4 * pairs) - tokens * 3 * 64 - pairs;
  CHECK(close(backward, Flops{2 * back}, 1e-12));
}

}  // namespace
}  // namespace stratagem::model::freeze_test

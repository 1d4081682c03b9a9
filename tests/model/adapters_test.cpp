// Low-rank adapters: parameters and FLOPs in closed form, and nothing else is trained.
#include "model/adapters.hpp"

#include <algorithm>

#include "model/cast_products.hpp"
#include "model/zoo/gpt.hpp"
#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"
#include "tests/model/zoo/parameters.hpp"

namespace stratagem::model::adapters_test {
namespace {

constexpr GptConfig small{
    .layers = 3, .hidden = 8, .heads = 2, .sequence = 5, .vocabulary = 11, .batch = 2};
constexpr std::int64_t rank = 4;

bool of_attention(const Tensor& weight) {
  return weight.name.ends_with("attention.qkv.weight") ||
         weight.name.ends_with("attention.projection.weight");
}

std::int64_t trained(const Graph& graph) {
  std::int64_t elements = 0;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    if (graph.tensors[id].role == Role::parameter && graph.gradient_of[id] >= 0)
      elements += element_count(graph.tensors[id]);
  }
  return elements;
}

}  // namespace

TEST_CASE("an adapter has rank * (in + out) parameters, and they are all that is trained") {
  const Graph graph = with_adapters(gpt(small), rank, &of_attention);
  const std::int64_t h = 8, adapters = 3 * rank * ((h + 3 * h) + (h + h));
  CHECK(parameter_count(graph) == gpt_parameters(small) + adapters);
  CHECK(trained(graph) == adapters);
  CHECK(std::ranges::count(graph.operators, Pass::optimizer, &Operator::pass) == 3 * 2 * 2);
  for (const Operator& op : graph.operators) {
    if (op.pass == Pass::weight_gradient) CHECK(op.name.find(".lora_") != std::string::npos);
  }
}

TEST_CASE("adapters cost their own products, and spare the gradients of the weights") {
  const double t = 2 * 5, s = 5, h = 8, layers = 3, r = rank, v = 11;
  const Graph graph = with_adapters(gpt(small), rank, &of_attention);
  const double weights = layers * 12 * h * h, scores = layers * 2 * s * h;
  const double adapters = layers * r * (4 * h + 2 * h);
  const double forward = 2 * t * (weights + scores + adapters + v * h);
  // Backward: the input of the first layer's attention needs no gradient, of W, A nor of a weight.
  const double inputs = forward - 2 * t * (3 * h * h + r * h);
  const double both_operands_of_scores = 2 * t * scores, of_adapters = 2 * t * adapters;
  CHECK(close(step_flops(graph), Flops{forward + inputs + both_operands_of_scores + of_adapters},
              1e-12));
}

TEST_CASE("adapters read what stands before a cast, and tables and norms take none") {
  GptConfig config = small;
  config.type = DataType::bf16;
  const Graph graph = with_adapters(cast_products(gpt(config), DataType::fp8), rank, &of_attention);
  int seen = 0;
  for (const Operator& op : graph.operators) {
    if (op.pass != Pass::forward || !op.name.ends_with(".lora_a")) continue;
    CHECK(graph.tensors[op.inputs[0]].type == DataType::bf16);
    ++seen;
  }
  CHECK(seen == 3 * 2);
  const Graph plain = gpt(small);
  const auto takes = [&](const std::string& name) {
    const auto tensor = std::ranges::find(plain.tensors, name, &Tensor::name);
    REQUIRE(tensor != plain.tensors.end());
    return takes_adapter(plain, static_cast<TensorId>(tensor - plain.tensors.begin()));
  };
  CHECK(takes("layers.0.mlp.fc1.weight"));
  CHECK_FALSE(takes("layers.0.mlp.fc1.bias"));
  CHECK_FALSE(takes("layers.0.mlp_norm.scale"));
  CHECK_FALSE(takes("embedding.positions"));
  CHECK_FALSE(takes("embedding.words"));  // the logits', too
}

}  // namespace stratagem::model::adapters_test

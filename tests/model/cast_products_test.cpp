// Which tensors linear layers read in another type, and what that leaves as it was.
#include "model/cast_products.hpp"

#include <algorithm>
#include <set>

#include "model/builder.hpp"
#include "model/freeze.hpp"
#include "model/zoo/gpt.hpp"
#include "model/zoo/llama.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::cast_products_test {

namespace {

constexpr GptConfig small{.layers = 3,
                          .hidden = 8,
                          .heads = 2,
                          .sequence = 4,
                          .vocabulary = 10,
                          .batch = 2,
                          .type = DataType::bf16};

int casts(const Graph& graph, Pass pass) {
  return static_cast<int>(std::ranges::count_if(graph.operators, [&](const Operator& op) {
    return op.kind == OpKind::cast && op.pass == pass;
  }));
}

const Operator& named(const Graph& graph, const std::string& name) {
  return *std::ranges::find(graph.operators, name, &Operator::name);
}

DataType type_of(const Graph& graph, TensorId tensor) { return graph.tensors[tensor].type; }

}  // namespace

TEST_CASE("four linear layers a layer read casts, forward and backward, and the logits do not") {
  const Graph before = gpt(small);
  const Graph graph = cast_products(before, DataType::fp8);
  CHECK(casts(graph, Pass::forward) == 4 * 3);
  CHECK(casts(graph, Pass::input_gradient) == 4 * 3);
  CHECK(parameter_count(graph) == parameter_count(before));
  CHECK(step_flops(graph).value == step_flops(before).value);
  for (const Operator& op : graph.operators) {
    if (op.kind != OpKind::contraction) continue;
    INFO(op.name);
    const bool linear = multiplies_cast(graph, op);
    const bool logits = op.name.starts_with("head.");
    const bool core = op.name.find("attention.scores") != std::string::npos ||
                      op.name.find("attention.context") != std::string::npos;
    CHECK(linear == (!logits && !core));
    CHECK(type_of(graph, op.inputs[0]) == (linear ? DataType::fp8 : DataType::bf16));
    CHECK(type_of(graph, op.outputs[0]) == DataType::bf16);
    if (op.pass == Pass::weight_gradient && linear)
      CHECK(type_of(graph, op.inputs[1]) == DataType::fp8);
  }
}

TEST_CASE("both products of a backward pass read one copy of the gradient") {
  const Graph graph = cast_products(gpt(small), DataType::fp8);
  const Operator& input = named(graph, "layers.1.mlp.fc1.B");
  const Operator& weight = named(graph, "layers.1.mlp.fc1.W");
  CHECK(input.inputs[0] == weight.inputs[0]);
  CHECK(named(graph, "layers.1.mlp.fc1").inputs[0] == weight.inputs[1]);
}

TEST_CASE("operators stand in an order in which they can run where products are cast") {
  const Graph graph = cast_products(gpt(small), DataType::fp8);
  std::set<TensorId> made;
  for (const Operator& op : graph.operators) {
    if (op.pass != Pass::forward) continue;
    made.insert(op.outputs.begin(), op.outputs.end());
  }
  for (auto segment = graph.segments.rbegin(); segment != graph.segments.rend(); ++segment) {
    for (const OpId id : segment->backward) {
      const Operator& op = graph.operators[id];
      INFO(op.name);
      for (const TensorId tensor : op.inputs) {
        const Role role = graph.tensors[tensor].role;
        CHECK((role == Role::input || role == Role::parameter || made.contains(tensor)));
      }
      made.insert(op.outputs.begin(), op.outputs.end());
    }
  }
}

TEST_CASE("layers that read one activation share its cast") {
  LlamaConfig config{.layers = 2, .hidden = 16, .heads = 2, .type = DataType::bf16};
  config.kv_heads = 2;
  config.intermediate = 24;
  config.sequence = 4;
  config.vocabulary = 10;
  config.batch = 2;
  config.fused.swiglu = false;  // gate and factor are products of their own
  const Graph graph = cast_products(llama(config), DataType::fp8);
  const Operator& gate = named(graph, "layers.0.mlp.gate");
  CHECK(gate.inputs[0] == named(graph, "layers.0.mlp.up").inputs[0]);
  CHECK(casts(graph, Pass::forward) == 4 * 2);
  CHECK(casts(graph, Pass::input_gradient) == 5 * 2);
}

namespace {

/// x -> product -> y, in a segment, and what reads y, there or in the next one.
Graph product_and_readers(bool apart) {
  Builder build("product");
  build.begin_segment("first");
  const TensorId tokens = build.tensor("tokens", {2, 4}, DataType::int64, Role::input);
  const TensorId table = build.parameter("table", {10, 8}, DataType::bf16);
  const auto activation = [&](const std::string& name) {
    return build.tensor(name, {2, 4, 8}, DataType::bf16, Role::activation);
  };
  const TensorId x = activation("x"), y = activation("y"), bent = activation("bent");
  const TensorId sum = activation("sum"), loss = activation("loss");
  build.add(OpKind::embedding, "lookup", "b s, vocabulary+ h -> b s h", {tokens, table}, {x});
  const TensorId weight = build.parameter("weight", {8, 8}, DataType::bf16);
  build.add(OpKind::contraction, "product", "b s k+, n k+ -> b s n", {x, weight}, {y});
  if (apart) build.begin_segment("second");
  build.add(OpKind::gelu, "bend", "b s n -> b s n", {y}, {bent});
  build.add(OpKind::add, "sum", "b s n, b s n -> b s n", {y, bent}, {sum});
  build.begin_segment("last");
  build.add(OpKind::gelu, "loss", "b s n -> b s n", {sum}, {loss});
  return cast_products(std::move(build).finish(loss), DataType::fp8);
}

}  // namespace

TEST_CASE("a gradient is cast when all that its readers return has been added up") {
  for (const bool apart : {false, true}) {
    INFO(apart);
    const Graph graph = product_and_readers(apart);
    const TensorId y = named(graph, "first.product").outputs[0];
    const auto cast = std::ranges::find_if(graph.operators, [](const Operator& op) {
      return op.kind == OpKind::cast && op.pass == Pass::input_gradient;
    });
    REQUIRE(cast != graph.operators.end());
    CHECK(cast->inputs[0] == graph.gradient_of[y]);
    CHECK(type_of(graph, cast->inputs[0]) == DataType::bf16);
    CHECK(type_of(graph, cast->outputs[0]) == DataType::fp8);
    // By the operator that the sum is of, or by the product where that is of another segment.
    CHECK(graph.operators[cast->forward].name == (apart ? "first.product" : "first.bend"));
    CHECK(graph.operators[cast->forward].segment == cast->segment);
  }
}

TEST_CASE("gradients that no trained parameter needs are not cast") {
  const Graph graph = freeze(cast_products(gpt(small), DataType::fp8), [](const Tensor& parameter) {
    return parameter.name.find("layers.2.mlp") == std::string::npos;
  });
  // Of the last layer's fc2 and fc1 alone; casts of the forward pass stay.
  CHECK(casts(graph, Pass::forward) == 4 * 3);
  CHECK(casts(graph, Pass::input_gradient) == 2);
}

TEST_CASE("tensor cores cast fp32 themselves") {
  CHECK(are_cast(DataType::bf16, DataType::fp8));
  CHECK_FALSE(are_cast(DataType::fp32, DataType::tf32));
  CHECK_FALSE(are_cast(DataType::bf16, DataType::bf16));
}

}  // namespace stratagem::model::cast_products_test

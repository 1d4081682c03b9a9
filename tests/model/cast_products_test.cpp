// Which tensors linear layers read in another type, and what that leaves as it was.
#include "model/cast_products.hpp"

#include <algorithm>
#include <set>

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

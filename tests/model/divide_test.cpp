// Divided graphs: the same parameters and FLOPs, parts that stand alone, and an explicit sum.
#include "model/divide.hpp"

#include <algorithm>
#include <set>

#include "base/input_error.hpp"
#include "model/attention_core.hpp"
#include "model/builder.hpp"
#include "model/zoo/gpt.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::divide_test {

namespace {

constexpr GptConfig small{
    .layers = 2, .hidden = 48, .heads = 8, .sequence = 20, .vocabulary = 112, .batch = 3};

std::vector<std::string> names(const Graph& graph, const std::vector<OpId>& ops) {
  std::vector<std::string> result;
  for (const OpId id : ops) result.push_back(graph.operators[id].name);
  return result;
}

Flops total(const Graph& graph, Pass pass) {
  Flops sum;
  for (const Operator& op : graph.operators) {
    if (op.pass == pass) sum += flops(graph, op);
  }
  return sum;
}

Divided in_parts(const Graph& graph, int parts) {
  std::vector<Division> divisions;
  for (OperatorRun& run : operator_runs(graph)) divisions.push_back({std::move(run), parts});
  return divide(graph, divisions);
}

}  // namespace

TEST_CASE("the runs of a layer are attention, QKV to projection, and MLP, fc1 to fc2") {
  const Graph graph = gpt(small);
  const std::vector<OperatorRun> found = operator_runs(graph);
  REQUIRE(found.size() == 4);
  CHECK(names(graph, found[0].operators) ==
        std::vector<std::string>{"layers.0.attention.qkv", "layers.0.attention.qkv.bias_add",
                                 "layers.0.attention.split_heads", "layers.0.attention.scores",
                                 "layers.0.attention.softmax", "layers.0.attention.dropout",
                                 "layers.0.attention.context", "layers.0.attention.merge_heads",
                                 "layers.0.attention.projection"});
  CHECK(names(graph, found[3].operators) ==
        std::vector<std::string>{"layers.1.mlp.fc1", "layers.1.mlp.fc1.bias_add",
                                 "layers.1.mlp.gelu", "layers.1.mlp.fc2"});
}

TEST_CASE("the core of an attention is scores, softmax, dropout and context") {
  const Graph graph = gpt(small);
  CHECK(attention_cores(graph, graph.segments.front()).empty());
  CHECK(attention_cores(graph, graph.segments.back()).empty());
  const auto cores = attention_cores(graph, graph.segments[2]);
  REQUIRE(cores.size() == 1);
  CHECK(names(graph, cores.front()) ==
        std::vector<std::string>{"layers.1.attention.scores", "layers.1.attention.softmax",
                                 "layers.1.attention.dropout", "layers.1.attention.context"});
}

TEST_CASE("a divided graph has the parameters and the FLOPs of the whole one") {
  const Graph graph = gpt(small);
  for (const int parts : {1, 2, 4, 8}) {
    INFO(parts);
    const Graph divided = in_parts(graph, parts).graph;
    CHECK(parameter_count(divided) == parameter_count(graph));
    for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient})
      CHECK(close(total(divided, pass), total(graph, pass), 1e-12));
    CHECK(divided.segments.size() == graph.segments.size());
    CHECK(divided.tensors[divided.loss].name == "head.loss");
  }
}

TEST_CASE("one part is the graph that was there before") {
  const Graph graph = gpt(small);
  const Graph same = in_parts(graph, 1).graph;
  REQUIRE(same.operators.size() == graph.operators.size());
  for (std::size_t id = 0; id < graph.operators.size(); ++id) {
    CHECK(same.operators[id].name == graph.operators[id].name);
    CHECK(same.operators[id].inputs == graph.operators[id].inputs);
    CHECK(same.operators[id].outputs == graph.operators[id].outputs);
  }
}

TEST_CASE("a part reads nothing of another part, and its result goes into a sum") {
  const Divided divided = in_parts(gpt(small), 4);
  const Graph& graph = divided.graph;
  for (const auto& division : divided.parts) {
    REQUIRE(division.size() == 4);
    for (const std::vector<OpId>& part : division) {
      std::set<TensorId> own;
      for (const OpId id : part) {
        const Operator& op = graph.operators[id];
        for (const TensorId tensor : op.inputs) {
          const bool of_a_part = graph.tensors[tensor].name.find(".part") != std::string::npos;
          if (of_a_part && graph.tensors[tensor].role != Role::parameter)
            CHECK(own.contains(tensor));
        }
        own.insert(op.outputs.begin(), op.outputs.end());
      }
      const TensorId result = graph.operators[part.back()].outputs[0];
      const auto sums = std::ranges::count_if(graph.operators, [&](const Operator& op) {
        return op.kind == OpKind::add && std::ranges::count(op.inputs, result) == 1;
      });
      CHECK(sums == 1);
    }
  }
  for (const Segment& segment : graph.segments) CHECK(std::ranges::is_sorted(segment.forward));
}

TEST_CASE("operators of a divided graph can run in the order of its segments' lists") {
  const Graph graph = in_parts(gpt(small), 4).graph;
  std::set<TensorId> ready;
  for (std::size_t id = 0; id < graph.tensors.size(); ++id) {
    const Role role = graph.tensors[id].role;
    if (role == Role::parameter || role == Role::input) ready.insert(static_cast<TensorId>(id));
  }
  std::size_t run = 0;
  const auto play = [&](const std::vector<OpId>& ops) {
    for (const OpId id : ops) {
      const Operator& op = graph.operators[id];
      INFO(op.name);
      for (const TensorId tensor : op.inputs) CHECK(ready.contains(tensor));
      ready.insert(op.outputs.begin(), op.outputs.end());
      ++run;
    }
  };
  for (const Segment& segment : graph.segments) play(segment.forward);
  for (auto segment = graph.segments.rbegin(); segment != graph.segments.rend(); ++segment)
    play(segment->backward);
  for (const Segment& segment : graph.segments) play(segment.optimizer);
  CHECK(run == graph.operators.size());
}

TEST_CASE("the parts of two products add up to the two products, number by number") {
  // y = B (A x): columns of A' and rows of B' in parts of 2 of 6. Whole numbers: sums are exact.
  Builder build("two");
  build.begin_segment("only");
  const auto tensor = [&](const std::string& name, std::vector<std::int64_t> shape, Role role) {
    return build.tensor(name, std::move(shape), DataType::fp32, role);
  };
  const TensorId x = tensor("x", {2, 4}, Role::input);
  const TensorId a = tensor("a", {6, 4}, Role::parameter);
  const TensorId b = tensor("b", {5, 6}, Role::parameter);
  const TensorId inner = tensor("inner", {2, 6}, Role::activation);
  const TensorId y = tensor("y", {2, 5}, Role::activation);
  build.add(OpKind::contraction, "up", "m k+, n k+ -> m n", {x, a}, {inner});
  build.add(OpKind::contraction, "down", "m k+, n k+ -> m n", {inner, b}, {y});
  const Graph whole = std::move(build).finish(y);
  const Graph parts = in_parts(whole, 3).graph;
  // Element (i, j) of a whole parameter, where the name says which range of which dimension it has.
  const auto element = [&](const Tensor& t, std::int64_t i, std::int64_t j) {
    const auto at = t.name.find(".part");
    const std::int64_t part = at == std::string::npos ? 0 : t.name[at + 5] - '0';
    const bool is_a = t.name.find("only.a") == 0;
    const bool is_b = t.name.find("only.b") == 0;
    if (at != std::string::npos) (is_a ? i : j) += part * (is_a ? t.shape[0] : t.shape[1]);
    return static_cast<double>((7 * i + 3 * j + (is_a ? 1 : is_b ? 2 : 0)) % 5 - 2);
  };
  const auto result = [&](const Graph& graph) {
    std::map<TensorId, std::vector<double>> values;
    const auto value = [&](TensorId id, std::int64_t i, std::int64_t j) {
      const Tensor& t = graph.tensors[id];
      const auto found = values.find(id);
      return found == values.end() ? element(t, i, j)
                                   : found->second[static_cast<std::size_t>(i * t.shape[1] + j)];
    };
    for (const OpId id : graph.segments[0].forward) {
      const Operator& op = graph.operators[id];
      const std::vector<std::int64_t>& shape = graph.tensors[op.outputs[0]].shape;
      std::vector<double> out;
      for (std::int64_t i = 0; i < shape[0]; ++i) {
        for (std::int64_t j = 0; j < shape[1]; ++j) {
          double sum = 0;
          if (op.kind == OpKind::add) {
            sum = value(op.inputs[0], i, j) + value(op.inputs[1], i, j);
          } else {
            for (std::int64_t k = 0; k < graph.tensors[op.inputs[0]].shape[1]; ++k)
              sum += value(op.inputs[0], i, k) * value(op.inputs[1], j, k);
          }
          out.push_back(sum);
        }
      }
      values[op.outputs[0]] = std::move(out);
    }
    return values.at(graph.loss);
  };
  CHECK(parts.segments[0].forward.size() == 3 * 2 + 2);
  CHECK(result(parts) == result(whole));
}

TEST_CASE("parameters that are read twice and dimensions that are frozen are not divided") {
  Builder build("tied");
  build.begin_segment("only");
  const auto activation = [&](const std::string& name, std::int64_t n) {
    return build.tensor(name, {2, n}, DataType::fp16, Role::activation);
  };
  const TensorId x = build.tensor("x", {2, 4}, DataType::fp16, Role::input);
  const TensorId wide = build.parameter("wide", {8, 4}, DataType::fp16);
  const TensorId narrow = build.parameter("narrow", {4, 8}, DataType::fp16);
  const TensorId y = activation("y", 8), z = activation("z", 4), again = activation("again", 8);
  build.add(OpKind::contraction, "up", "b k+, n k+ -> b n", {x, wide}, {y});
  build.add(OpKind::contraction, "down", "b k+, n k+ -> b n", {y, narrow}, {z});
  const Builder once = build;
  CHECK(operator_runs(Builder(once).finish(z)).size() == 1);
  CHECK(operator_runs(Builder(once).finish(y)).empty());  // what leaves must be whole
  build.add(OpKind::contraction, "up_again", "b k+, n k+ -> b n", {z, wide}, {again});
  CHECK(operator_runs(std::move(build).finish(again)).empty());
}

TEST_CASE("parts that do not come out even are refused by the operator's name") {
  const Graph graph = gpt(small);
  try {
    in_parts(graph, 3);  // 8 heads
    FAIL("8 heads in 3 parts");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), ContainsSubstring("3 equal parts"));
  }
}

}  // namespace stratagem::model::divide_test

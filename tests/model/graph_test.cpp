// FLOPs of operators and parameters of graphs, on operators small enough to count by hand.
#include "model/graph.hpp"

#include "base/input_error.hpp"
#include "model/builder.hpp"
#include "tests/catch.hpp"

namespace stratagem::model::graph_test {

namespace {

/// loss = sum over n of x (b, k) times weight (n, k).
Graph product(std::int64_t b, std::int64_t k, std::int64_t n) {
  Builder build("product");
  build.begin_segment("only");
  const TensorId x = build.tensor("x", {b, k}, DataType::fp16, Role::input);
  const TensorId weight = build.parameter("weight", {n, k}, DataType::fp16);
  const TensorId y = build.tensor("y", {b, n}, DataType::fp16, Role::activation);
  build.add(OpKind::contraction, "product", "b k+, n k+ -> b n", {x, weight}, {y});
  return std::move(build).finish(y);
}

}  // namespace

TEST_CASE("a matrix product takes one multiplication and one addition per element of m, n and k") {
  const Graph graph = product(3, 5, 7);
  CHECK(flops(graph, graph.operators[0]) == Flops{2.0 * 3 * 5 * 7});
}

TEST_CASE("operators that are no contraction have no FLOPs of their own") {
  const Graph graph = product(3, 5, 7);
  for (const Operator& op : graph.operators) {
    if (op.kind != OpKind::contraction) CHECK(flops(graph, op) == Flops{0});
  }
}

TEST_CASE("only parameters are counted as parameters") {
  CHECK(parameter_count(product(3, 5, 7)) == 5 * 7);
}

TEST_CASE("operators are named after their segment") {
  const Graph graph = product(3, 5, 7);
  CHECK(graph.operators[0].name == "only.product");
  CHECK(graph.tensors[graph.operators[0].inputs[1]].name == "only.weight");
}

TEST_CASE("an operator has as many operands as its annotation, and stands in a segment") {
  Builder build("wrong");
  CHECK_THROWS_AS(build.add(OpKind::gelu, "early", "b -> b", {}, {}), BrokenPromise);
  build.begin_segment("only");
  const TensorId x = build.tensor("x", {2}, DataType::fp16, Role::activation);
  CHECK_THROWS_AS(build.add(OpKind::add, "sum", "b, b -> b", {x}, {x}), BrokenPromise);
  CHECK_THROWS_AS(build.add(OpKind::dropout, "drop", "b -> b, b", {x}, {x}), BrokenPromise);
}

}  // namespace stratagem::model::graph_test

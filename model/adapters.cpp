// Goes through the forward operators and puts two products and a sum behind each adapted one.
#include "model/adapters.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/builder.hpp"

namespace stratagem::model {
namespace {

/// Parameters whose rows are picked.
std::set<TensorId> tables_of(const Graph& graph) {
  std::set<TensorId> tables;
  for (const Operator& op : graph.operators) {
    if (op.kind == OpKind::embedding && op.pass == Pass::forward) tables.insert(op.inputs[1]);
  }
  return tables;
}

/// W x: x has several dimensions, of which the weight has the last.
bool is_linear(const Graph& graph, const Operator& op, TensorId weight) {
  if (op.kind != OpKind::contraction || op.pass != Pass::forward || op.inputs[1] != weight)
    return false;
  const Tensor& tensor = graph.tensors[weight];
  const auto& terms = op.annotation->inputs;
  return tensor.role == Role::parameter && tensor.shape.size() == 2 &&
         dimension_of(terms[0], terms[1][1].identifiers.front()) ==
             static_cast<int>(terms[0].size()) - 1;
}

class Adapting {
 public:
  Adapting(Graph& graph, std::int64_t rank) : graph_(graph), rank_(rank) {}

  void copy(Operator op) {
    read_sums(op);
    if (op.kind == OpKind::cast) before_cast_[op.outputs[0]] = op.inputs[0];
    add(std::move(op));
  }

  /// Copies a product with its adapter. A comes before W, so that what both return for x is added
  /// up where A reads it.
  void adapt(Operator op) {
    read_sums(op);
    const Annotation& of = *op.annotation;
    const Tensor weight = graph_.tensors[op.inputs[1]];
    const TensorId x = source_of(op.inputs[0]), y = op.outputs[0];
    std::vector<Term> low = of.inputs[0];
    low.back() = {.identifiers = {"rank"}, .frozen = {false}};
    const std::string of_y = to_text(of.outputs[0], of.outputs[0]);
    const std::string width = of.inputs[1][1].identifiers.front() + "+";
    const TensorId a = parameter(op.name + ".lora_a", {rank_, weight.shape[1]}, weight.type);
    const TensorId b = parameter(op.name + ".lora_b", {weight.shape[0], rank_}, weight.type);
    std::vector<std::int64_t> shape = graph_.tensors[x].shape;
    shape.back() = rank_;
    const TensorId reduced = activation(op.name + ".lora_a.out", shape, y);
    const TensorId widened = activation(op.name + ".lora_b.out", graph_.tensors[y].shape, y);
    const TensorId sum = activation(op.name + ".adapted", graph_.tensors[y].shape, y);
    add(op, OpKind::contraction, ".lora_a",
        to_text(of.inputs[0], of.outputs[0]) + ", rank " + width + " -> " + to_text(low, low),
        {x, a}, reduced);
    add(op);
    add(op, OpKind::contraction, ".lora_b",
        to_text(low, of.outputs[0]) + ", " + of.inputs[1][0].identifiers.front() + " rank+ -> " +
            of_y,
        {reduced, b}, widened);
    add(op, OpKind::add, ".adapted", of_y + ", " + of_y + " -> " + of_y, {y, widened}, sum);
    sums_[y] = sum;
  }

 private:
  /// Readers of an adapted product read the sum.
  void read_sums(Operator& op) const {
    for (TensorId& input : op.inputs) {
      if (const auto sum = sums_.find(input); sum != sums_.end()) input = sum->second;
    }
  }

  [[nodiscard]] TensorId source_of(TensorId x) const {
    const auto found = before_cast_.find(x);
    return found == before_cast_.end() ? x : found->second;
  }

  TensorId tensor(Tensor tensor) {
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(graph_.tensors.size()) - 1;
  }
  TensorId parameter(const std::string& name, std::vector<std::int64_t> shape, DataType type) {
    return tensor({.name = name + ".weight",
                   .shape = std::move(shape),
                   .type = type,
                   .role = Role::parameter,
                   .requires_grad = true});
  }
  /// Of the type of another one.
  TensorId activation(const std::string& name, std::vector<std::int64_t> shape, TensorId like) {
    return tensor({.name = name,
                   .shape = std::move(shape),
                   .type = graph_.tensors[like].type,
                   .role = Role::activation,
                   .requires_grad = true});
  }

  void add(Operator op) {
    graph_.segments[op.segment].forward.push_back(static_cast<OpId>(graph_.operators.size()));
    graph_.operators.push_back(std::move(op));
  }
  void add(const Operator& beside, OpKind kind, const std::string& what,
           const std::string& annotation, std::vector<TensorId> inputs, TensorId output) {
    add({.name = beside.name + what,
         .kind = kind,
         .pass = Pass::forward,
         .annotation = parse_annotation(annotation),
         .inputs = std::move(inputs),
         .outputs = {output},
         .segment = beside.segment});
  }

  Graph& graph_;
  std::int64_t rank_;
  std::map<TensorId, TensorId> sums_;         ///< by output of a product: what readers read
  std::map<TensorId, TensorId> before_cast_;  ///< by copy
};

}  // namespace

bool takes_adapter(const Graph& graph, TensorId weight) {
  return !tables_of(graph).contains(weight) &&
         std::ranges::any_of(graph.operators,
                             [&](const Operator& op) { return is_linear(graph, op, weight); });
}

Graph with_adapters(Graph graph, std::int64_t rank,
                    const std::function<bool(const Tensor& weight)>& adapted) {
  graph = forward_pass(std::move(graph));
  const std::set<TensorId> tables = tables_of(graph);
  std::set<TensorId> weights;
  for (const Operator& op : graph.operators) {
    if (op.kind != OpKind::contraction || tables.contains(op.inputs[1])) continue;
    const TensorId weight = op.inputs[1];
    if (is_linear(graph, op, weight) && adapted(graph.tensors[weight])) weights.insert(weight);
  }
  const std::vector<Operator> operators = std::exchange(graph.operators, {});
  for (Segment& segment : graph.segments) segment.forward.clear();
  for (Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::parameter) tensor.requires_grad = false;
    if (tensor.role == Role::activation) tensor.requires_grad = true;
  }
  Adapting adapting(graph, rank);
  for (const Operator& op : operators) {
    const bool takes = op.kind == OpKind::contraction && weights.contains(op.inputs[1]);
    takes ? adapting.adapt(op) : adapting.copy(op);
  }
  differentiate(graph, graph.loss);
  return graph;
}

}  // namespace stratagem::model

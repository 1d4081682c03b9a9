// Puts a cast before each linear layer, once for each activation of a segment.
#include "model/cast_products.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/builder.hpp"

namespace stratagem::model {
namespace {

bool is_parameter(const Graph& graph, TensorId tensor) {
  return graph.tensors[tensor].role == Role::parameter;
}

int segment_of_loss(const Graph& graph) {
  const auto found = std::ranges::find_if(graph.operators, [&](const Operator& op) {
    return std::ranges::count(op.outputs, graph.loss) > 0;
  });
  return found == graph.operators.end() ? -1 : found->segment;
}

/// Adds forward operators to a graph that has none yet.
class Casting {
 public:
  Casting(Graph& graph, DataType type) : graph_(graph), type_(type) {}

  void add(Operator op) {
    auto& forward = graph_.segments[op.segment].forward;
    forward.push_back(static_cast<OpId>(graph_.operators.size()));
    graph_.operators.push_back(std::move(op));
  }

  /// A linear layer, whose activations are cast first.
  void add_layer(Operator op) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (!is_parameter(graph_, op.inputs[i])) op.inputs[i] = copy_of(op, i);
    }
    add(std::move(op));
  }

 private:
  TensorId copy_of(const Operator& reader, std::size_t i) {
    const TensorId tensor = reader.inputs[i];
    const std::vector<Term>& terms = reader.annotation->inputs[i];
    const std::string text = to_text(terms, terms);
    const auto [known, fresh] = copies_.try_emplace({reader.segment, tensor, text}, -1);
    if (!fresh) return known->second;
    known->second = static_cast<TensorId>(graph_.tensors.size());
    Tensor copy = graph_.tensors[tensor];
    copy.name += " in " + to_text(type_);
    copy.type = type_;
    graph_.tensors.push_back(std::move(copy));
    add({.name = reader.name + std::string(cast_suffix),
         .kind = OpKind::cast,
         .pass = Pass::forward,
         .annotation = parse_annotation(text + " -> " + text),
         .inputs = {tensor},
         .outputs = {known->second},
         .segment = reader.segment});
    return known->second;
  }

  Graph& graph_;
  DataType type_;
  /// By segment, activation, and what readers call its dimensions.
  std::map<std::tuple<int, TensorId, std::string>, TensorId> copies_;
};

/// Does it compute a number for each expert?
bool is_router(const Graph& graph, const Operator& op) {
  if (dimension_of(op.annotation->outputs[0], "expert") < 0) return false;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (!is_parameter(graph, op.inputs[i]))
      return dimension_of(op.annotation->inputs[i], "expert") < 0;
  }
  return false;
}

bool is_linear(const Graph& graph, const Operator& op) {
  return op.kind == OpKind::contraction && !is_router(graph, op) &&
         std::ranges::any_of(op.inputs,
                             [&](TensorId tensor) { return is_parameter(graph, tensor); });
}

}  // namespace

bool are_cast(DataType values, DataType products) {
  return values != products && products != DataType::tf32;
}

Graph cast_products(Graph graph, DataType type) {
  const int last = segment_of_loss(graph);
  graph = forward_pass(std::move(graph));
  const std::vector<Operator> operators = std::exchange(graph.operators, {});
  for (Segment& segment : graph.segments) segment.forward.clear();
  Casting casting(graph, type);
  for (const Operator& op : operators) {
    if (op.segment != last && is_linear(graph, op)) {
      casting.add_layer(op);
    } else {
      casting.add(op);
    }
  }
  differentiate(graph, graph.loss);
  return graph;
}

bool multiplies_cast(const Graph& graph, const Operator& op) {
  if (op.kind != OpKind::contraction) return false;
  const Operator& forward = op.forward < 0 ? op : graph.operators[op.forward];
  return graph.tensors[forward.inputs[0]].type != graph.tensors[forward.outputs[0]].type;
}

std::map<TensorId, DataType> cast_parameters(const Graph& graph) {
  std::map<TensorId, DataType> parameters;
  for (const Operator& op : graph.operators) {
    if (op.pass != Pass::forward || !multiplies_cast(graph, op)) continue;
    for (const TensorId tensor : op.inputs) {
      if (is_parameter(graph, tensor)) parameters.emplace(tensor, graph.tensors[op.inputs[0]].type);
    }
  }
  return parameters;
}

}  // namespace stratagem::model

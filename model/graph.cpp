// Facts about graphs that follow from annotations and shapes.
#include "model/graph.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace stratagem::model {
namespace {

Flops attention_flops(const Graph& graph, const Operator& op) {
  const Operator& forward = op.forward < 0 ? op : graph.operators[op.forward];
  const Tensor& queries = graph.tensors[forward.inputs[0]];
  const Tensor& keys = graph.tensors[forward.inputs[1]];
  const int position = dimension_of(forward.annotation->inputs[1], "t");
  const std::int64_t key = keys.shape.back(), value = graph.tensors[forward.inputs[2]].shape.back();
  const bool cached = op.kind == OpKind::cached_attention;
  const std::int64_t all =
      cached ? op.cached + graph.tensors[op.inputs[3]].shape[1] : keys.shape[position];
  const std::int64_t heads_and_tokens = element_count(queries) / key;
  std::int64_t pairs =
      heads_and_tokens * (forward.window > 0 ? std::min(forward.window, all) : all);
  if (!forward.documents.empty()) {
    std::int64_t of_head = 0;
    for (const std::int64_t length : forward.documents)
      of_head += length * (forward.window > 0 ? std::min(forward.window, length) : length);
    pairs = heads_and_tokens / all * of_head;
  }
  return Flops{2.0 * static_cast<double>(pairs * widths_of_attention(op, key, value))};
}

}  // namespace

std::int64_t widths_of_attention(const Operator& op, std::int64_t key, std::int64_t value) {
  if (op.pass == Pass::forward) return key + value;  // scores, and their product with the values
  const std::vector<Term>& of = op.annotation->outputs[0];
  if (dimension_of(of, "s") >= 0) return value + key;  // of probabilities, of queries
  return dimension_of(of, "w") >= 0 ? value : key;
}

bool is_fused_attention(const Operator& op) {
  return op.kind == OpKind::fused_attention || op.kind == OpKind::fused_attention_to_all ||
         op.kind == OpKind::cached_attention;
}

std::vector<int> layers(const Graph& graph) {
  std::vector<int> result;
  for (std::size_t segment = 1; segment + 1 < graph.segments.size(); ++segment) {
    const std::vector<OpId>& ops = graph.segments[segment].forward;
    if (ops.empty() || graph.operators[ops.front()].kind != OpKind::embedding)
      result.push_back(static_cast<int>(segment));
  }
  return result;
}

Flops flops(const Graph& graph, const Operator& op) {
  if (is_fused_attention(op)) return attention_flops(graph, op);
  if (op.kind != OpKind::contraction) return {};
  // A fused dimension counts once, under its leading identifier.
  std::map<std::string, double> sizes;
  double filled = 1;
  const auto collect = [&](const std::vector<TensorId>& tensors,
                           const std::vector<std::vector<Term>>& terms) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      filled = std::min(filled, graph.tensors[tensors[t]].filled);
      for (std::size_t d = 0; d < terms[t].size(); ++d) {
        sizes[terms[t][d].identifiers.front()] =
            static_cast<double>(graph.tensors[tensors[t]].shape[d]);
      }
    }
  };
  collect(op.inputs, op.annotation->inputs);
  collect(op.outputs, op.annotation->outputs);
  double product = 2 * filled;
  for (const auto& [identifier, size] : sizes) product *= size;
  return Flops{product};
}

Flops step_flops(const Graph& graph) {
  Flops sum;
  for (const Operator& op : graph.operators)
    sum += (op.pass == Pass::forward ? graph.forward_repeats : 1) * flops(graph, op);
  return sum;
}

OpId product_without(const Graph& graph, const std::string& dimension) {
  const auto found = std::ranges::find_if(graph.operators, [&](const Operator& op) {
    return op.kind == OpKind::contraction && op.pass == Pass::forward &&
           !may_split(*op.annotation, dimension);
  });
  return found == graph.operators.end() ? -1 : static_cast<OpId>(found - graph.operators.begin());
}

void hold_gradients_in(Graph& graph, DataType type) {
  graph.held_gradients = type;
  for (std::size_t id = 0; id < graph.gradient_of.size(); ++id) {
    const TensorId gradient = graph.gradient_of[id];
    if (graph.tensors[id].role == Role::parameter && gradient >= 0)
      graph.tensors[gradient].type = type;
  }
}

std::int64_t parameter_count(const Graph& graph) {
  std::int64_t count = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::parameter) count += element_count(tensor);
  }
  return count;
}

}  // namespace stratagem::model

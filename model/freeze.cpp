// Marks parameters and derives the backward pass anew.
#include "model/freeze.hpp"

#include <algorithm>
#include <utility>

#include "model/builder.hpp"

namespace stratagem::model {

Graph freeze(Graph graph, const std::function<bool(const Tensor& parameter)>& frozen) {
  graph = forward_pass(std::move(graph));
  for (Tensor& tensor : graph.tensors) {
    if (tensor.role == Role::parameter && frozen(tensor)) tensor.requires_grad = false;
  }
  differentiate(graph, graph.loss);
  return graph;
}

bool trains_any(const Graph& graph) {
  return std::ranges::any_of(graph.tensors, [](const Tensor& tensor) {
    return tensor.role == Role::parameter && tensor.requires_grad;
  });
}

}  // namespace stratagem::model

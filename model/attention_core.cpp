// Follows scores from the product that makes them to the one that sums over them.
#include "model/attention_core.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace stratagem::model {
namespace {

bool multiplies_activations(const Graph& graph, const Operator& op) {
  return op.kind == OpKind::contraction && std::ranges::all_of(op.inputs, [&](TensorId tensor) {
           return graph.tensors[tensor].role == Role::activation;
         });
}

/// Does the product pair a dimension of its first operand alone with one of its second alone?
bool makes_pairs(const Graph& graph, const Operator& op) {
  if (!multiplies_activations(graph, op)) return false;
  const auto alone = [&](int mine, int other) {
    return std::ranges::any_of(op.annotation->outputs[0], [&](const Term& term) {
      const std::string& name = term.identifiers.front();
      return dimension_of(op.annotation->inputs[mine], name) >= 0 &&
             dimension_of(op.annotation->inputs[other], name) < 0;
    });
  };
  return alone(0, 1) && alone(1, 0);
}

/// The core that begins with an operator; nullopt if no product of activations sums over its
/// scores.
std::optional<std::vector<OpId>> core_from(const Graph& graph, const Segment& segment, OpId first) {
  std::vector<OpId> core = {first};
  std::set<TensorId> pairs = {graph.operators[first].outputs[0]};
  const std::vector<std::int64_t>& shape = graph.tensors[*pairs.begin()].shape;
  for (const OpId id : segment.forward) {
    const Operator& op = graph.operators[id];
    const bool reads =
        std::ranges::any_of(op.inputs, [&](TensorId tensor) { return pairs.contains(tensor); });
    if (id <= first || !reads) continue;
    if (graph.tensors[op.outputs[0]].shape != shape) {
      core.push_back(id);
      return multiplies_activations(graph, op) ? std::optional(core) : std::nullopt;
    }
    core.push_back(id);
    pairs.insert(op.outputs.begin(), op.outputs.end());
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::vector<OpId>> attention_cores(const Graph& graph, const Segment& segment) {
  std::vector<std::vector<OpId>> cores;
  for (const OpId id : segment.forward) {
    if (is_fused_attention(graph.operators[id])) cores.push_back({id});
    if (!makes_pairs(graph, graph.operators[id])) continue;
    if (auto core = core_from(graph, segment, id)) cores.push_back(std::move(*core));
  }
  return cores;
}

}  // namespace stratagem::model

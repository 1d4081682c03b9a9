// Megatron-LM's tensor parallelism: every rank holds a share of each layer's matrices.
#include <map>
#include <string>

#include "strategies/all.hpp"

namespace stratagem::strategies {
namespace {

using model::Operator;
using model::OpKind;

/// What an operator divides when the one that wrote its first operand divides the dimension
/// `incoming` of that operand ("" where it is whole): heads and MLP columns stay divided until a
/// contraction sums over them.
std::string divided_dimension(const model::Graph& graph, const Operator& op, int incoming,
                              const std::map<model::TensorId, int>& divided) {
  if (incoming >= 0) return op.annotation.inputs[0][incoming].identifiers.front();
  if (op.kind == OpKind::embedding) return "vocabulary";
  if (op.kind != OpKind::contraction) return "";
  // A tied table is divided as it was for the lookup.
  if (const auto tied = divided.find(op.inputs[1]); tied != divided.end())
    return op.annotation.inputs[1][tied->second].identifiers.front();
  // A matrix that widens (QKV, fc1, logits) is divided by columns; experts have one each.
  const model::Tensor& weight = graph.tensors[op.inputs[1]];
  if (weight.role != model::Role::parameter) return "";
  const std::size_t columns = weight.shape.size() - 2;
  const bool widens = weight.shape[columns] > weight.shape[columns + 1];
  return widens ? op.annotation.inputs[1][columns].identifiers.front() : "";
}

}  // namespace

/// op-trans, operator by operator: the token table along the vocabulary; QKV and fc1 by columns, so
/// that heads and MLP columns stay on their rank; the projections after them by rows, which leaves
/// partial sums; logits and the parts of the cross-entropy along the vocabulary. Norms, dropouts
/// and residuals between are replicated. The lowering finds what must be communicated: two
/// all-reduces of b*s*h per layer forward and two backward. Source: Shoeybi et al., Megatron-LM,
/// arXiv:1909.08053, section 3.
///
/// With sequence parallelism what would be replicated is divided along the tokens, where it has
/// them. The lowering then finds an all-gather and a reduce-scatter in place of every all-reduce,
/// keeps the divided part for the backward pass, and gathers it again there: two all-gathers more
/// per layer. Gradients of norms and row biases become partial sums over the tensor ranks. Source:
/// Korthikanti et al., arXiv:2205.05198, section 4.2.2.
void tensor_parallel(Plan& plan, const Options& options) {
  if (options.tensor == 1) return;
  const Axis ranks{.name = "tensor", .size = options.tensor, .stride = 1};
  const model::Graph& graph = plan.graph();
  std::map<model::TensorId, int> divided;  // by tensor: its divided dimension
  for (const model::OpId id : plan.operators()) {
    const Operator& op = graph.operators[id];
    const auto incoming = divided.find(op.inputs[0]);
    const std::string dim =
        divided_dimension(graph, op, incoming == divided.end() ? -1 : incoming->second, divided);
    const bool tokens =
        dim.empty() && options.sequence_parallel && model::may_split(op.annotation, "s");
    plan.assign(plan.trans(id, {.dim = tokens ? "s" : dim, .parts = ranks.size}), ranks);
    if (dim.empty()) continue;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const int position = model::dimension_of(op.annotation.outputs[i], dim);
      if (position >= 0) divided[op.outputs[i]] = position;
    }
    for (std::size_t i = 1; i < op.inputs.size(); ++i) {
      const int position = model::dimension_of(op.annotation.inputs[i], dim);
      if (graph.tensors[op.inputs[i]].role == model::Role::parameter && position >= 0)
        divided[op.inputs[i]] = position;
    }
  }
}

}  // namespace stratagem::strategies

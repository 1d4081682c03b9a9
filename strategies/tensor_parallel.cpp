// Megatron-LM's tensor parallelism: every rank holds a share of each layer's matrices.
#include <map>
#include <set>
#include <string>

#include "model/run.hpp"
#include "strategies/all.hpp"

namespace stratagem::strategies {
namespace {

using model::Operator;
using model::OpKind;

/// What an operator divides when the one that wrote its first operand divides the dimension
/// `incoming` of that operand ("" where it is whole): heads and MLP columns stay divided until a
/// contraction sums over them. `summed`: operators whose columns a later one sums over.
std::string divided_dimension(const model::Graph& graph, model::OpId id, int incoming,
                              const std::map<model::TensorId, int>& divided,
                              const std::set<model::OpId>& summed) {
  const Operator& op = graph.operators[id];
  if (incoming >= 0) return op.annotation.inputs[0][incoming].identifiers.front();
  if (op.kind == OpKind::embedding) return "vocabulary";
  if (op.kind != OpKind::contraction) return "";
  // A tied table is divided as it was for the lookup.
  if (const auto tied = divided.find(op.inputs[1]); tied != divided.end())
    return op.annotation.inputs[1][tied->second].identifiers.front();
  // A matrix of which a later one sums over the columns (QKV, fc1) or that widens (logits) is
  // divided by columns.
  const model::Tensor& weight = graph.tensors[op.inputs[1]];
  const bool widens = weight.role == model::Role::parameter && weight.shape[0] > weight.shape[1];
  return widens || summed.contains(id) ? op.annotation.inputs[1][0].identifiers.front() : "";
}

}  // namespace

/// op-trans, operator by operator: the token table along the vocabulary; QKV and fc1 by columns, so
/// that heads and MLP columns stay on their rank; the projections after them by rows, which leaves
/// partial sums; logits and the parts of the cross-entropy along the vocabulary. Norms, dropouts
/// and residuals between are replicated. The lowering finds what must be communicated: two
/// all-reduces of b*s*h per layer forward and two backward. Source: Shoeybi et al., Megatron-LM,
/// arXiv:1909.08053, section 3.
void tensor_parallel(Plan& plan, const Options& options) {
  if (options.tensor == 1) return;
  const Axis ranks{.name = "tensor", .size = options.tensor, .stride = 1};
  const model::Graph& graph = plan.graph();
  std::set<model::OpId> summed;
  for (const model::Run& run : model::runs(graph))
    summed.insert(run.operators.begin(), run.operators.end() - 1);
  std::map<model::TensorId, int> divided;  // by tensor: its divided dimension
  for (const model::OpId id : plan.operators()) {
    const Operator& op = graph.operators[id];
    const auto incoming = divided.find(op.inputs[0]);
    const std::string dim = divided_dimension(
        graph, id, incoming == divided.end() ? -1 : incoming->second, divided, summed);
    plan.assign(plan.trans(id, {.dim = dim, .parts = ranks.size}), ranks);
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

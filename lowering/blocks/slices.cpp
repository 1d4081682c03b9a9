// Finds the dimensions that a model uses for tokens, and sizes its tensors for a slice of them.
#include "lowering/blocks/slices.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/input_error.hpp"

namespace stratagem::lowering {
namespace {

/// The first causal softmax: its last two dimensions are queries and keys. No other may see all
/// tokens.
const model::Operator& causal_softmax(const strategies::Plan& plan) {
  const model::Graph& graph = plan.graph();
  const auto of_kind = [&](model::OpKind kind) {
    return std::ranges::find(graph.operators, kind, &model::Operator::kind);
  };
  const auto found = of_kind(model::OpKind::masked_softmax);
  if (found == graph.operators.end() ||
      of_kind(model::OpKind::scaled_softmax) != graph.operators.end()) {
    const bool fused = of_kind(model::OpKind::fused_attention) != graph.operators.end();
    throw InputError("", plan.said.slices,
                     std::string("a model with causal attention that keeps its scores") +
                         (fused ? " (\"attention\": \"unfused\")" : ""),
                     graph.name);
  }
  return *found;
}

bool names(const std::vector<model::Term>& terms, const std::string& identifier) {
  return model::dimension_of(terms, identifier) >= 0;
}

}  // namespace

std::vector<TokenSlice> token_slices(const strategies::Plan& plan) {
  if (plan.token_slices.empty()) return {TokenSlice{}};
  const model::Graph& graph = plan.graph();
  const model::Operator& softmax = causal_softmax(plan);
  const std::vector<model::Term>& terms = softmax.annotation->inputs[0];
  const std::int64_t total = graph.tensors[softmax.inputs[0]].shape[terms.size() - 2];
  if (graph.tensors[softmax.inputs[0]].shape.back() != total)
    throw InputError("", plan.said.slices, "as many keys as queries, no prefix of keys",
                     graph.name);
  if (model::product_without(graph, terms[terms.size() - 2].identifiers.front()) >= 0)
    throw InputError("", plan.said.slices,
                     "a model whose matrix products have tokens to divide, no experts", graph.name);
  const std::int64_t sum =
      std::accumulate(plan.token_slices.begin(), plan.token_slices.end(), std::int64_t{0});
  if (sum != total) {
    throw InputError("", plan.said.slices,
                     "slices that add up to " + std::to_string(total) + " tokens",
                     std::to_string(sum));
  }
  if (!plan.recomputed().empty())
    throw InputError("", plan.said.slices,
                     "no recomputation: later slices need the keys of earlier ones", "");
  std::vector<TokenSlice> slices;
  std::int64_t begin = 0;
  for (const std::int64_t size : plan.token_slices) {
    slices.push_back({.begin = begin,
                      .end = begin + size,
                      .total = total,
                      .tokens = terms[terms.size() - 2].identifiers.front(),
                      .keys = terms.back().identifiers.front()});
    begin += size;
  }
  return slices;
}

std::vector<std::int64_t> operand_shape(std::vector<std::int64_t> shape,
                                        const std::vector<model::Term>& terms,
                                        const TokenSlice& slice) {
  if (slice.whole()) return shape;
  for (std::size_t d = 0; d < terms.size(); ++d) {
    const std::string& identifier = terms[d].identifiers.front();
    if (identifier == slice.tokens) shape[d] = slice.size();
    if (identifier == slice.keys) shape[d] = slice.end;
  }
  return shape;
}

model::Graph sliced(const model::Graph& graph, const TokenSlice& slice) {
  model::Graph result = graph;
  std::set<model::TensorId> resident;  // of the whole model, whatever the slice
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].role != model::Role::parameter) continue;
    resident.insert(static_cast<model::TensorId>(t));
    resident.insert(graph.gradient_of[t]);
  }
  for (const model::Operator& op : graph.operators) {
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (resident.contains(op.outputs[i])) continue;
      const std::vector<model::Term>& terms = op.annotation->outputs[i];
      std::vector<std::int64_t>& shape = result.tensors[op.outputs[i]].shape;
      const bool shared = names(terms, slice.keys) && !names(terms, slice.tokens);
      if (!shared) shape = operand_shape(graph.tensors[op.outputs[i]].shape, terms, slice);
    }
  }
  return result;
}

}  // namespace stratagem::lowering

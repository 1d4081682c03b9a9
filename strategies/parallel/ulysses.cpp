// DeepSpeed-Ulysses: ranks divide the tokens of a sequence, and within attention the heads.
#include <algorithm>
#include <set>
#include <string>

#include "model/attention_core.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {
namespace {

struct Ulysses {
  int ranks = 1;
};

std::set<model::OpId> attention_of(const model::Graph& graph) {
  std::set<model::OpId> all;
  for (const model::Segment& segment : graph.segments) {
    for (const std::vector<model::OpId>& core : model::attention_cores(graph, segment))
      all.insert(core.begin(), core.end());
  }
  return all;
}

/// Annotations name heads, a Llama's by the groups that share keys and values; "" has none.
std::string heads_of(const model::Operator& op) {
  for (const char* dim : {"heads", "g"}) {
    if (model::may_split(*op.annotation, dim)) return dim;
  }
  return "";
}

/// Does an operator have heads, but no tokens that ranks divide? A prefix stands before the keys of
/// all tokens, and biases by distance are made of weights alone.
bool has_heads_alone(const model::Graph& graph, const model::Operator& op) {
  const bool of_weights = std::ranges::all_of(op.inputs, [&](model::TensorId input) {
    return graph.tensors[input].role == model::Role::parameter;
  });
  return !heads_of(op).empty() && (of_weights || !model::may_split(*op.annotation, "s"));
}

/// op-trans of attention along the heads of each tensor rank, and of all other operators along the
/// tokens. Where the two meet, the lowering finds all-to-alls: of queries, keys, values and the
/// result, each of bsh/p elements on each of p ranks. Shared keys and values have fewer elements.
/// The backward pass exchanges as much. That of fused attention also reads the result, which is
/// kept by tokens and is exchanged once more. Every rank needs a head of keys of its own. Source:
/// Jacobs et al., DeepSpeed Ulysses, arXiv:2309.14509, section 3.
void divide_tokens_and_heads(Plan& plan, const Options& options) {
  const int size = size_of(options, "sp");
  if (size == 1) return;
  check_products(plan.graph(), size);
  const std::set<model::OpId> attention = attention_of(plan.graph());
  const placement::Axis ranks{.name = "ulysses", .size = size, .stride = stride_of(options, "sp")};
  for (const model::OpId id : plan.operators()) {
    const model::Operator& op = plan.graph().operators[id];
    const bool heads = attention.contains(id) || has_heads_alone(plan.graph(), op);
    const Split split =
        heads ? Split{.dim = heads_of(op), .parts = size, .inner = true} : tokens_of(op, size);
    plan.assign(plan.trans(id, split), ranks);
  }
}

}  // namespace

Strategy ulysses() {
  return {.options = {{"ulysses", own(&Ulysses::ranks), whole(1),
                       "DeepSpeed-Ulysses: ranks that divide the tokens of every sequence, and the "
                       "heads of attention, between which all-to-alls exchange them"}},
          .apply = &divide_tokens_and_heads,
          .ranks = {.name = "sp", .size = [](const Options& options) {
                      return options.own.of<Ulysses>().ranks;
                    }}};
}

}  // namespace stratagem::strategies

// DeepSpeed-Ulysses: ranks divide the tokens of a sequence, and within attention the heads.
#include <set>

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

/// Attention names its heads in the annotation, a Llama by the groups that share keys and values.
Split heads_of(const model::Operator& op, int ranks) {
  const bool grouped = !model::may_split(*op.annotation, "heads");
  return {.dim = grouped ? "g" : "heads", .parts = ranks, .inner = true};
}

/// op-trans of attention along the heads, each tensor rank's among themselves, of all other
/// operators along the tokens. Where the two meet, the lowering finds an all-to-all of queries, of
/// keys, of values and of the result, bsh/p elements on each of p ranks (of keys and values fewer
/// where queries share them), and as many backward. No rank has all of the keys, but each needs a
/// head of them. Source: Jacobs et al., DeepSpeed Ulysses, arXiv:2309.14509, section 3.
void divide_tokens_and_heads(Plan& plan, const Options& options) {
  const int size = size_of(options, "sp");
  if (size == 1) return;
  check_products(plan.graph(), size);
  const std::set<model::OpId> attention = attention_of(plan.graph());
  const placement::Axis ranks{.name = "ulysses", .size = size, .stride = stride_of(options, "sp")};
  for (const model::OpId op : plan.operators()) {
    const model::Operator& divided = plan.graph().operators[op];
    plan.assign(
        plan.trans(op, attention.contains(op) ? heads_of(divided, size) : tokens_of(divided, size)),
        ranks);
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

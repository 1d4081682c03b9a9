// Context parallelism: the tokens of every sequence are divided over ranks.
#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {

void check_products(const model::Graph& graph, int ranks) {
  const model::OpId whole = model::product_without(graph, "s");
  if (whole < 0) return;
  throw InputError(
      "", "",
      "1, since such ranks do not divide matrix products of whole samples, such as those of "
      "experts "
      "(\"expert\", \"tensor\" and \"data\" do)",
      std::to_string(ranks) + ": each rank would compute all of " + graph.operators[whole].name);
}

Split tokens_of(const model::Operator& op, int ranks) {
  return {.dim = model::may_split(*op.annotation, "s") ? "s" : "", .parts = ranks};
}

namespace {

/// op-trans of every operator along the tokens "s". Attention reads keys and values of all tokens
/// ("t"), so the lowering finds an all-gather of each in the forward pass; the backward pass
/// gathers them again (only the rank's own part is kept) and reduce-scatters their gradients.
/// Learned positions divide as the tokens do. Models with matrix products that cannot (those of
/// experts, whose slots are of a whole sample) are refused. Ranks are taken to have equal shares of
/// a causal mask, as two chunks from opposite ends of a sequence give them (scores in parts are
/// computed in full on all ranks, as on one). Source: Llama Team, arXiv:2407.21783, section 3.3.2.
void divide_sequences(Plan& plan, const Options& options) {
  if (options.context == 1) return;
  check_products(plan.graph(), options.context);
  const placement::Axis ranks{
      .name = "context", .size = options.context, .stride = stride_of(options, "cp")};
  for (const model::OpId op : plan.operators())
    plan.assign(plan.trans(op, tokens_of(plan.graph().operators[op], ranks.size)), ranks);
}

}  // namespace

Strategy context_parallel() {
  return {{{"context", &Options::context, whole(1),
            "context parallelism: ranks that divide the tokens of every sequence"}},
          &divide_sequences,
          nullptr,
          {.name = "cp", .size = [](const Options& options) { return options.context; }}};
}

}  // namespace stratagem::strategies

// Expert parallelism: the experts of a layer are divided over data-parallel ranks.
#include <algorithm>

#include "base/input_error.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"

namespace stratagem::strategies {
namespace {

/// Does an operator work expert by expert, on slots that lie so? Routers, dispatch and combination
/// see all experts of their samples.
bool by_expert(const model::Operator& op) {
  return model::may_split(*op.annotation, "expert") &&
         model::dimension_of(op.annotation->inputs[0], "expert") == 0 &&
         model::dimension_of(op.annotation->outputs[0], "expert") == 0;
}

/// Consecutive data-parallel ranks form an axis of their own. Operators that work expert by expert
/// are divided along the experts there, all others along the batch as before. The lowering finds
/// one all-to-all of the slots' contents before the experts and one after them, forward and
/// backward, and that the gradients of experts are partial sums over the other data-parallel ranks
/// only. Source: Lepikhin et al., GShard, arXiv:2006.16668, section 3.
void divide_experts(Plan& plan, const Options& options) {
  if (options.expert == 1) return;
  const model::Graph& graph = plan.graph();
  const std::vector<model::OpId> ops = plan.operators();
  if (std::ranges::none_of(ops, [&](model::OpId op) { return by_expert(graph.operators[op]); }))
    throw InputError("", "", "a model with experts", "none");
  const placement::Axis ranks{
      .name = "expert", .size = options.expert, .stride = stride_of(options, "dp")};
  for (const model::OpId op : ops) {
    const std::string dim = by_expert(graph.operators[op]) ? "expert" : batch_dimension(plan, op);
    plan.assign(plan.trans(op, {.dim = dim, .parts = ranks.size}), ranks);
  }
}

void check_experts(Options& options, const JsonReader& strategy) {
  if (options.data % options.expert != 0)
    strategy.at("expert").fail("a divisor of data, " + std::to_string(options.data));
}

}  // namespace

Strategy expert_parallel() {
  return {
      {Option<Options>("expert", &Options::expert, whole(1),
                       "consecutive data-parallel ranks that divide the experts of a layer: two "
                       "all-to-alls a layer and pass; divides `data` and `experts`")
           .worth_where("experts", {1, 2, 4, 8, 16, 32, 64})},
      &divide_experts,
      &check_experts,
      {.within = "dp"}};
}

}  // namespace stratagem::strategies

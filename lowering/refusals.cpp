// Each refusal names the setting, what it expects and what it found.
#include "lowering/refusals.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "lowering/stack/casts.hpp"
#include "lowering/stack/cuda_graphs.hpp"
#include "lowering/stages/segment.hpp"
#include "lowering/stages/shards.hpp"

namespace stratagem::lowering {

using strategies::Plan;
using Place = strategies::Keep::Where;
using What = strategies::Keep::What;

namespace {

/// Are there parameters that devices gather, whether ranks divide them or one rank has all?
bool gathers_parameters(const Plan& plan, const cost::Stack& stack) {
  return !plan.divided(What::parameters).empty() || is_gathered(plan, stack, {});
}

/// Throws unless a stage stands on a grid of axes.
void expect_axes(const Stages& stages, int stage, const std::string& path,
                 const std::string& where) {
  if (stages.irregular(stage))
    throw InputError("", path, "stages on one grid in equal parts" + where, "");
}

/// Where the user said something of any of these, or else of the steps.
std::string said(const Plan& plan, const std::vector<What>& of) {
  const std::string rule = plan.residency.said(of);
  return rule.empty() ? plan.steps.said : rule;
}

bool within(const std::vector<std::string>& axes, const std::vector<std::string>& others) {
  return std::ranges::all_of(
      axes, [&](const std::string& axis) { return std::ranges::count(others, axis) > 0; });
}

/// Parts of what is divided over more axes make up those of what is divided over fewer: each rank
/// steps a part of what it keeps.
void refuse_other_axes(const Plan& plan) {
  for (const What what : {What::parameters, What::gradients}) {
    const strategies::Keep* rule = plan.residency.of(what, strategies::Keep::Between::iterations);
    if (rule == nullptr || within(rule->divided, plan.steps.divided)) continue;
    throw InputError("", said(plan, {what}),
                     "parameters and gradients that are divided over axes of their steps",
                     plan.steps.divided.empty() ? "steps that are not divided" : "other axes");
  }
  const auto& parameters = plan.divided(What::parameters);
  const auto& gradients = plan.divided(What::gradients);
  if (within(parameters, gradients) || within(gradients, parameters)) return;
  throw InputError("", said(plan, {What::gradients}),
                   "gradients that are divided over all axes of parameters, or some of them",
                   "other axes");
}

/// What divides weights needs grids to divide them over, and weights that have one version.
void refuse_shards(const Plan& plan, const Stages& stages, const cost::Stack& stack) {
  const std::string where = plan.steps.on_host ? " where steps run on the host"
                                               : " where weights are divided or gathered";
  const std::string path =
      plan.steps.on_host ? plan.steps.said : said(plan, {What::parameters, What::gradients});
  const bool divides = !plan.divided(What::states).empty();
  if (!divides && !gathers_parameters(plan, stack) && !plan.steps.on_host) return;
  if (!plan.updates.flush)
    throw InputError("", path, "a schedule with a flush" + where, "one without");
  for (int stage = 0; stage < stages.count(); ++stage) expect_axes(stages, stage, path, where);
}

/// Buffers that are there for as long as backward cells run hold what is reduced to shards, or
/// leaves for the host, before the steps of the same iteration.
void refuse_gradient_buffers(const Plan& plan) {
  if (plan.gradients.buffers == 0) return;
  const std::string& said = plan.said.gradients;
  if (plan.divided(What::gradients).empty() && !plan.steps.on_host) {
    throw InputError("", said,
                     "gradients that ranks divide, or that leave for the host, to wait in them",
                     "none");
  }
  if (!plan.updates.flush || plan.steps.delayed) {
    throw InputError("", said,
                     "a schedule with a flush, and steps that are not delayed, beside them", "");
  }
}

/// Copies of weights in another type are cast once an iteration, from what a rank keeps.
void refuse_casts(const Plan& plan, const cost::Stack& stack, const cost::Precision& precision) {
  if (!needs_casts(precision)) return;
  const bool casts_shards = cost::says(stack, cost::GatheredWeights::as_products_read_them);
  const bool ahead = gathers_before_first_use(plan);
  const bool gathers = ahead || (gathers_parameters(plan, stack) && !casts_shards);
  const bool away = plan.place_of(What::parameters) != Place::device;
  if (!gathers && !away) return;
  const std::string found = away    ? "weights on the host"
                            : ahead ? "weights that are gathered before their first use, as "
                                      "`prefetch` says with ZeRO 1 and 2"
                                    : "weights that ranks divide, with a stack whose rules do not "
                                      "say what is gathered (gather_weights)";
  throw InputError("", said(plan, {What::parameters}),
                   "weights that stay whole where linear layers multiply in " +
                       model::to_text(precision.products),
                   found);
}

/// A rule of CUDA graphs acts somewhere.
void refuse_idle_graphs(const Plan& plan, const cost::Stack& stack) {
  const model::Graph& graph = plan.graph();
  const bool any = std::ranges::any_of(graph.operators, [&](const model::Operator& op) {
    return op.segment >= 0 && in_cuda_graph(stack, name_within(graph, op));
  });
  const auto rules = cost::rules_of<cost::CudaGraph>(stack);
  if (any || rules.empty()) return;
  throw InputError("", "/stack", "in cuda_graph the names of operators within a layer of the model",
                   rules.front().operators.front());
}

/// What waits elsewhere are whole activations of whole micro-batches.
void refuse_swaps(const Plan& plan, const Stages& stages) {
  if (!plan.residency.keeps_segments() && !plan.residency.keeps_cells()) return;
  const std::string activations = plan.residency.said({What::activations});
  const std::string path =
      activations.empty() ? plan.residency.said({What::checkpoints}) : activations;
  if (!plan.updates.flush) {
    throw InputError("", path, "a schedule with a flush where activations are swapped",
                     "one without");
  }
  const bool both = plan.residency.keeps_segments() && plan.residency.keeps_cells();
  if (plan.slices() > 1 || both) {
    throw InputError(
        "", path, "whole micro-batches, and none lent to other stages, where they are swapped", "");
  }
  for (std::size_t segment = 0; segment < plan.graph().segments.size(); ++segment) {
    const auto one = static_cast<int>(segment);
    if (const strategies::Keep* rule = plan.residency.of_segment(one))
      expect_axes(stages, stages.of(one), rule->said, " where they are swapped");
  }
}

/// Parts of checkpoints are parts of a layout, and what runs again in several segments has one
/// stage.
void refuse_recomputation(const Plan& plan, const Stages& stages) {
  if (plan.residency.of(What::checkpoints) != nullptr && plan.recomputed().empty()) {
    throw InputError("", plan.residency.said({What::checkpoints}),
                     "something that is recomputed where checkpoints have a rule", "nothing");
  }
  for (int stage = 0; !plan.divided(What::checkpoints).empty() && stage < stages.count(); ++stage) {
    expect_axes(stages, stage, plan.residency.said({What::checkpoints}),
                " where checkpoints are divided");
  }
  for (std::size_t group = 0; group < plan.recomputed().size(); ++group) {
    const auto [first, last] = strategies::segment_range(plan.graph(), plan.recomputed()[group]);
    for (int segment = first; segment < last; ++segment) {
      if (stages.of(segment) == stages.of(last)) continue;
      const std::string said = group < plan.said.again.size() ? plan.said.again[group] : "";
      throw InputError("", said, "a recomputed group of one stage",
                       plan.graph().segments[segment].name + " of another");
    }
  }
}

void refuse_slices(const Plan& plan, const Stages& stages) {
  if (plan.slices() <= 1) return;
  for (int stage = 0; stage < stages.count(); ++stage)
    expect_axes(stages, stage, plan.said.slices, "");
}

void refuse_rings(const Plan& plan, const Stages& stages) {
  for (const model::OpId op : plan.operators()) {
    if (plan.placement(op).ring.empty()) continue;
    expect_axes(stages, stages.of(plan.graph().operators[op].segment), plan.said.rings,
                " where attention runs in a ring");
  }
}

/// A shard is a run of elements, which has neither rows nor columns.
void refuse_factored_states(const Plan& plan, const Stages& stages, const Parameters& parameters,
                            const cost::Training& training) {
  if (!is_factored(training.optimizer)) return;
  for (std::size_t device_class = 0; device_class < stages.device_classes().size();
       ++device_class) {
    for (const auto& [parameter, local] : parameters.on(static_cast<int>(device_class))) {
      if (local.step.axes.empty()) continue;
      throw InputError(
          "", plan.steps.said,
          "an optimizer that keeps something of every element where its steps are divided",
          training.optimizer.name + ", which keeps sums of rows and columns");
    }
  }
}

/// Every cell sends its gradients to the host: what other ranks have to add must be there by then.
void refuse_steps_on_host(const Plan& plan, const Parameters& parameters) {
  const bool away = plan.place_of(What::parameters) != Place::device;
  if (away && (!plan.steps.on_host || plan.steps.delayed)) {
    throw InputError("", said(plan, {What::parameters}),
                     "steps on the host, none of them delayed, where parameters live there", "");
  }
  for (const What what : {What::states, What::gradients}) {
    if (plan.place_of(what) != Place::drives || plan.steps.on_host) continue;
    throw InputError("", said(plan, {what}),
                     "steps on the host where their states or gradients are on drives", "");
  }
  if (away && plan.residency.of(What::parameters)->at_least > 0) {
    throw InputError("", said(plan, {What::parameters}),
                     "parameters of all sizes divided where they live on the host, \"at least\" 0",
                     std::to_string(plan.residency.of(What::parameters)->at_least));
  }
  if (!plan.steps.on_host) return;
  for (std::size_t id = 0; id < plan.graph().tensors.size(); ++id) {
    if (plan.graph().gradient_of[id] < 0) continue;
    if (plan.graph().tensors[id].role != model::Role::parameter) continue;
    if (parameters[static_cast<model::TensorId>(id)].grids.size() < 2) continue;
    throw InputError("", plan.steps.said,
                     "parameter " + plan.graph().tensors[id].name +
                         " on one stage (untied, and no copies of stages) where steps run on the "
                         "host",
                     "");
  }
}

}  // namespace

void refuse_before_blocks(const Plan& plan, const Stages& stages, const cost::Stack& stack,
                          const cost::Precision& precision) {
  refuse_slices(plan, stages);
  refuse_rings(plan, stages);
  refuse_other_axes(plan);
  refuse_shards(plan, stages, stack);
  refuse_gradient_buffers(plan);
  refuse_casts(plan, stack, precision);
  refuse_idle_graphs(plan, stack);
  refuse_swaps(plan, stages);
  refuse_recomputation(plan, stages);
}

void refuse_before_sequences(const Plan& plan, const Stages& stages, const Parameters& parameters,
                             const cost::Training& training) {
  refuse_steps_on_host(plan, parameters);
  refuse_factored_states(plan, stages, parameters, training);
}

}  // namespace stratagem::lowering

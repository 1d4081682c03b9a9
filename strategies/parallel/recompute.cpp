// Recomputation: forward operators run again in the backward pass, so that their results need not
// be kept.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.hpp"
#include "base/pattern.hpp"
#include "model/attention_core.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

bool in_a_group(const Plan& plan, const std::vector<model::OpId>& ops) {
  return std::ranges::any_of(ops, [&](model::OpId op) { return plan.runs_again(op); });
}

/// The layers of a stage.
std::vector<int> layers_of(const Plan& plan, const std::vector<int>& stage) {
  std::vector<int> layers;
  std::ranges::set_intersection(stage, model::layers(plan.graph()), std::back_inserter(layers));
  return layers;
}

/// The first layers of a stage, so many at a time as one group, within which are those of another
/// strategy.
void recompute_layers(Plan& plan, const std::vector<int>& layers, const RecomputeOptions& options) {
  const std::size_t most = options.layers == 0 ? layers.size() : options.layers;
  std::vector<model::OpId> group;
  for (std::size_t i = 0; i < std::min(most, layers.size()); ++i) {
    const std::vector<model::OpId>& layer = plan.graph().segments[layers[i]].forward;
    group.insert(group.end(), layer.begin(), layer.end());
    if ((i + 1) % options.together == 0) plan.recompute(std::exchange(group, {}));
  }
  plan.recompute(std::move(group));
}

void recompute_cores(Plan& plan, const std::vector<int>& layers) {
  for (const int layer : layers) {
    for (const std::vector<model::OpId>& core :
         model::attention_cores(plan.graph(), plan.graph().segments[layer])) {
      if (!in_a_group(plan, core)) plan.recompute(core);
    }
  }
}

/// What a pattern names, as a group of every segment.
void recompute_named(Plan& plan, const std::string& pattern, bool drops_results) {
  bool any = false;
  std::vector<std::string> names;
  for (const model::Segment& segment : plan.graph().segments) {
    std::vector<model::OpId> group;
    for (const model::OpId op : segment.forward) {
      names.push_back(plan.graph().operators[op].name);
      if (matches(names.back(), pattern)) group.push_back(op);
    }
    any |= !group.empty();
    plan.recompute(std::move(group), drops_results);
  }
  if (!any)
    throw InputError("", "", "a pattern of operators' names" + fitting_patterns(pattern, names),
                     pattern);
}

/// An op-trans: {op} becomes {op, op again}, the second ordered before the operator's backward
/// pass. "full": all operators of a layer (model::layers) as one group, or those of several layers
/// of a stage, of all its layers or the first ones: Megatron-LM's --recompute-method, "uniform" and
/// "block". Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174.
/// "selective": the core of every attention, few FLOPs for many bytes.
/// Source: Korthikanti et al., arXiv:2205.05198, section 5. "operators": those that a pattern
/// names, as a group of every segment. What another strategy has put into groups stays there,
/// within those of "full".
///
/// cpu_checkpointing: these inputs wait on the host, and come back layer by layer (P_a+cpu).
/// partition_checkpoints: tensor ranks that would keep the same input of a group keep a part each.
void run_again(Plan& plan, const Options& options) {
  for (const std::vector<int>& stage : plan.stages) {
    const std::vector<int> layers = layers_of(plan, stage);
    if (options.recompute.what == "full") recompute_layers(plan, layers, options.recompute);
    if (options.recompute.what == "selective") recompute_cores(plan, layers);
  }
  const std::vector<std::string>& patterns = options.recompute.operators;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    try {
      recompute_named(plan, patterns[i], options.recompute.drops_results);
    } catch (const InputError& error) {
      throw InputError("", "/operators/" + std::to_string(i), error.expected, error.found);
    }
  }
  if (options.recompute.divides && options.tensor > 1)
    plan.residency.keep({.what = Keep::What::checkpoints,
                         .divided = {"tensor"},
                         .said = path_of(&Options::recompute, &RecomputeOptions::divides)});
  if (options.recompute.on_host)
    plan.residency.keep({.what = Keep::What::checkpoints,
                         .where = Keep::Where::host,
                         .ahead = plan.residency.ahead_of_segments(),  // as swaps have it
                         .said = path_of(&Options::recompute, &RecomputeOptions::on_host)});
}

void check_checkpoints(Options& options, const JsonReader& strategy) {
  if (options.recompute.divides && options.recompute.what == "none")
    strategy.at("partition_checkpoints").fail("recompute beside it, which has checkpoints");
  if (options.recompute.on_host && options.recompute.what == "none")
    strategy.at("cpu_checkpointing").fail("recompute beside it, which has checkpoints");
}

/// {"layers": n, "method": "block"}, in the words of Megatron-LM's --recompute-method.
Format<RecomputeOptions> by_method() {
  using R = RecomputeOptions;
  const OptionList<R> options = {
      {"layers", &R::layers, whole(1), "`full`, by a `method` of Megatron-LM's", must_be_there},
      {"method", &R::what, words({"block", "uniform"}),
       "`block`: the first layers of every stage, one by one; `uniform`: so many together, as "
       "`every`",
       must_be_there}};
  return converted<R>(object_of(options), [](const R& said) {
    return said.what == "block" ? R{.what = "full", .layers = said.layers}
                                : R{.what = "full", .together = said.layers};
  });
}

/// A word, or an object that says more.
Format<RecomputeOptions> what_runs_again() {
  using R = RecomputeOptions;
  const OptionList<R> every = {
      {"every", &R::together, whole(1),
       "`full`, with so many consecutive layers of a stage run again together", must_be_there}};
  const OptionList<R> operators = {
      {"operators", &R::operators, list_of<std::string>(text(), 1),
       "patterns of operators' names (`*` is any text), each a group of every segment",
       must_be_there},
      {"results", &R::drops_results, choice<bool>({{"kept", false}, {"dropped", true}}),
       "of these groups, where other gradients of the segment read them, too: as a checkpoint of "
       "PyTorch keeps them, or as Megatron-Core's CheckpointWithoutOutput drops them"}};
  return either(converted<R>(words({"none", "selective", "full"}),
                             [](const std::string& word) { return R{.what = word}; }),
                {object_of(every, R{.what = "full"}), by_method(),
                 object_of(operators, R{.what = "operators"})});
}

}  // namespace

Strategy recompute() {
  constexpr auto again = &Options::recompute;
  using What = Option<Options>;
  return {{What{"recompute", again, what_runs_again(),
                "what runs again in the backward pass: `full`, every layer, of which only the "
                "input is kept; `selective`, the core of every attention, scores to context",
                "none"}
               .worth({"none", "selective", "full"}),
           {"partition_checkpoints", within(again, &RecomputeOptions::divides), flag(),
            "ZeRO-R's P_a: tensor ranks keep a part each of the inputs of what runs again, and "
            "gather them before"},
           {"cpu_checkpointing", within(again, &RecomputeOptions::on_host), flag(),
            "inputs of what runs again wait in the memory of the host, their parts where they are "
            "divided, and come back layer by layer (DeepSpeed's key of this name)"}},
          &run_again,
          &check_checkpoints};
}

}  // namespace stratagem::strategies

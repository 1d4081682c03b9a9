// Co-shard: more parts of a layer than devices, one after another, each recomputed by itself.
#include <algorithm>
#include <set>
#include <utility>

#include "base/input_error.hpp"
#include "model/attention_core.hpp"
#include "strategies/language/colocate.hpp"
#include "strategies/parallel/all.hpp"

namespace stratagem::strategies {
namespace {

bool is_attention(const model::Graph& graph, const model::OperatorRun& run) {
  const int segment = graph.operators[run.operators.front()].segment;
  const auto cores = model::attention_cores(graph, graph.segments[segment]);
  return std::ranges::any_of(cores, [&](const std::vector<model::OpId>& core) {
    return run.split.contains(core.front());
  });
}

/// The runs of the first layers; where two share an operator, the earlier one.
std::vector<model::Division> divisions(const model::Graph& graph, const CoShard& parts) {
  std::vector<int> layers = model::layers(graph);
  const auto all = static_cast<int>(layers.size());
  if (parts.layers > all)
    throw InputError("", "", "coshard_layers of at most the model's " + std::to_string(all),
                     std::to_string(parts.layers));
  if (parts.layers > 0) layers.resize(parts.layers);
  std::vector<model::Division> result;
  std::set<model::OpId> taken;
  for (model::OperatorRun& run : model::operator_runs(graph)) {
    const int segment = graph.operators[run.operators.front()].segment;
    const auto is_taken = [&](model::OpId op) { return taken.contains(op); };
    if (!std::ranges::binary_search(layers, segment) ||
        std::ranges::any_of(run.operators, is_taken))
      continue;
    taken.insert(run.operators.begin(), run.operators.end());
    const int count = is_attention(graph, run) ? parts.attention : parts.mlp;
    result.push_back({std::move(run), count});
  }
  return result;
}

/// op-trans of attention and MLP of the first layers along heads and the MLP's inner dimension into
/// C parts that stand on one device, in order; each part is a recomputed group of its own, so that
/// the inner activations of one part are alive at a time: 1/C of the layer's. Kept are the norm's
/// result that all parts read, and what is outside of them. Without communication: the partial
/// results are added up before they cross ranks.
///
/// nnScaler makes n = C |D| parts and puts part k on device floor(k / C). Here the C parts come
/// first, and tensor parallelism divides each over D: device d has the parts c |D| + d for all c.
/// That is the same plan up to a permutation of the heads and of the inner dimension. Source: Lin
/// et al., nnScaler, OSDI 2024, table 5.
void divide_layers(Plan& plan, const Options& options) {
  const CoShard& parts = options.division.coshard;
  if (parts.attention == 1 && parts.mlp == 1) return;
  const std::vector<model::Division> wanted = divisions(plan.graph(), parts);
  if (wanted.empty())
    throw InputError("", "", "layers with an attention or an MLP that can be divided", "none");
  for (auto& division : colocate(plan, plan.graph(), wanted)) {
    for (std::vector<model::OpId>& part : division) plan.recompute(std::move(part));
  }
}

void check_coshard(Options& /*options*/, const JsonReader& strategy) {
  const auto layers = strategy.find("coshard_layers");
  if (layers && !strategy.has("coshard")) layers->fail("coshard beside it");
}

}  // namespace

Strategy coshard() {
  const auto both = converted<CoShard>(whole(1), [](std::int64_t parts) {
    return CoShard{.attention = static_cast<int>(parts), .mlp = static_cast<int>(parts)};
  });
  const OptionList<CoShard> each = {
      {"attention", &CoShard::attention, whole(1), "parts of the attention"},
      {"mlp", &CoShard::mlp, whole(1), "parts of the MLP"}};
  return {{{"coshard", within(&Options::division, &LayerDivision::coshard),
            either(both, {object_of(each)}),
            "co-shard: parts of a layer's attention and MLP, one after another on the same GPUs, "
            "each recomputed by itself",
            "1"},
           {"coshard_layers", [](Options& all) -> int& { return all.division.coshard.layers; },
            whole(1), "how many of the first layers are divided so", "all"}},
          &divide_layers,
          &check_coshard};
}

}  // namespace stratagem::strategies

// The table of strategies, and their composition.
#include "strategies/parallel/all.hpp"

#include "base/input_error.hpp"

namespace stratagem::strategies {

const std::vector<Strategy>& all() {
  static const std::vector<Strategy> table = {
      coshard(),
      data_parallel(),
      expert_parallel(),
      context_parallel(),
      dynamic_axial(),
      sequence_parallel(),
      operators(),
      tensor_parallel(),
      token_slices(),
      pipeline(),
      zero(),
      offload(),
      swap_activations(),
      recompute(),
      rank_order(),
      schedule(),
  };
  return table;
}

std::vector<OptionText> option_texts() {
  std::vector<OptionText> texts;
  for (const Strategy& entry : all())
    texts.insert(texts.end(), entry.options.begin(), entry.options.end());
  return texts;
}

Plan compose(const model::Graph& graph, int micro_batches, const Options& options,
             const JsonReader& strategy) {
  Plan plan(graph);
  plan.micro_batches = micro_batches;
  for (const Strategy& entry : all()) {
    try {
      entry.apply(plan, options);
    } catch (const InputError& error) {
      throw InputError(strategy.file(), strategy.path() + "/" + entry.key() + error.path,
                       error.expected, error.found);
    }
  }
  return plan;
}

}  // namespace stratagem::strategies

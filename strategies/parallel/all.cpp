// The table of strategies, in the order in which they are applied, and their composition.
#include "strategies/parallel/all.hpp"

#include "base/input_error.hpp"
#include "base/table.hpp"

namespace stratagem::strategies {

// clang-format off
STRATAGEM_TABLE(all, Strategy,
    coshard,
    data_parallel,
    expert_parallel,
    dynamic_axial,
    context_parallel,
    ulysses,
    ring_attention,
    sequence_parallel,
    operators,
    tensor_parallel,
    token_slices,
    pipeline,
    zero,
    offload,
    swap_activations,
    recompute,
    rank_order,
    schedule)
// clang-format on

std::vector<OptionText> option_texts() {
  std::vector<OptionText> texts;
  for (const Strategy& entry : all())
    texts.insert(texts.end(), entry.options.begin(), entry.options.end());
  return texts;
}

namespace {

/// The object of all options in a scenario.
const std::string strategy_path = "/strategy";

}  // namespace

std::string path_at(Options& options, const void* place) {
  std::string path = strategy_path;
  for (const Strategy& entry : all()) {
    for (const Option<Options>& option : entry.options) {
      if (option.at(options) == place) path += "/" + option.key;
    }
  }
  return path;
}

namespace {

/// Where in a scenario a strategy's error is: its path begins with "/strategy", or is below its
/// key.
std::string path_in(const JsonReader& strategy, const Strategy& entry, const InputError& error) {
  if (error.path.starts_with(strategy_path))
    return strategy.path() + error.path.substr(strategy_path.size());
  return strategy.path() + "/" + entry.key() + error.path;
}

}  // namespace

Plan compose(const model::Graph& graph, int micro_batches, const Options& options,
             const JsonReader& strategy) {
  Plan plan(graph);
  plan.micro_batches = micro_batches;
  for (const Strategy& entry : all()) {
    try {
      entry.apply(plan, options);
      plan.note_said(strategy_path + "/" + entry.key());
    } catch (const InputError& error) {
      throw InputError(strategy.file(), path_in(strategy, entry, error), error.expected,
                       error.found);
    }
  }
  return plan;
}

}  // namespace stratagem::strategies

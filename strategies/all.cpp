// The tables of strategies and schedules, and their composition.
#include "strategies/all.hpp"

#include "base/input_error.hpp"

namespace stratagem::strategies {

const std::vector<Strategy>& all() {
  static const std::vector<Strategy> table = {
      {"coshard",
       "parts of attention and MLP that follow each other on one device, recomputed apart",
       &coshard},
      {"data", "the batch divided over ranks that all hold the model", &data_parallel},
      {"tensor",
       "Megatron-LM: heads, MLP and vocabulary divided, two all-reduces per layer and pass",
       &tensor_parallel},
      {"pipeline", "stages of consecutive layers, activations sent from stage to stage", &pipeline},
      {"recompute",
       "run layers' forward pass again before their backward pass: all of it, or attention's core",
       &recompute},
  };
  return table;
}

Plan compose(const model::Graph& graph, int micro_batches, const Options& options,
             const JsonReader& strategy) {
  Plan plan(graph);
  plan.micro_batches = micro_batches;
  for (const Strategy& entry : all()) {
    try {
      entry.apply(plan, options);
    } catch (const InputError& error) {
      throw InputError(strategy.file(), strategy.path() + "/" + entry.key, error.expected,
                       error.found);
    }
  }
  const Schedule& schedule = schedule_named(options.schedule);
  try {
    apply(schedule, plan, options.pipeline, options.chunks_of(schedule));
  } catch (const InputError& error) {
    throw InputError(strategy.file(), strategy.path() + "/schedule", error.expected, error.found);
  }
  return plan;
}

}  // namespace stratagem::strategies

// The tables of strategies and schedules, and their composition.
#include "strategies/parallel/all.hpp"

#include "base/input_error.hpp"

namespace stratagem::strategies {

const std::vector<Strategy>& all() {
  static const std::vector<Strategy> table = {
      {"coshard",
       "parts of attention and MLP that follow each other on one device, recomputed apart",
       &coshard},
      {"data", "the batch divided over ranks that all hold the model", &data_parallel},
      {"expert", "experts divided over consecutive data ranks, two all-to-alls per layer and pass",
       &expert_parallel},
      {"context", "tokens divided over ranks, keys and values gathered", &context_parallel},
      {"dap", "FastFold: the axis divided that a layer does not work along, all-to-alls between",
       &dynamic_axial},
      {"sequence_parallel",
       "tensor ranks divide the tokens in norms, dropouts and residuals: gathers and scatters",
       &sequence_parallel},
      {"operators", "what single operators divide over the tensor ranks, by patterns of names",
       &operators},
      {"tensor",
       "Megatron-LM: heads, MLP and vocabulary divided, two all-reduces per layer and pass",
       &tensor_parallel},
      {"token_slices",
       "TeraPipe: every sequence in slices that follow each other from stage to stage",
       &token_slices},
      {"pipeline", "stages of consecutive layers, activations sent from stage to stage", &pipeline},
      {"zero", "ZeRO: data ranks keep shards of optimizer states, gradients (2), parameters (3)",
       &zero},
      {"offload",
       "ZeRO-Offload: optimizer steps on the processors of the server; and parameters in its "
       "memory",
       &offload},
      {"swap", "activations of layers wait in the memory of the host, or of other GPUs",
       &swap_activations},
      {"recompute",
       "run forward operators again in the backward pass: layers, attention's cores, or by name",
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
      throw InputError(strategy.file(), strategy.path() + "/" + entry.key + error.path,
                       error.expected, error.found);
    }
  }
  const Schedule& schedule = schedule_named(options.schedule);
  try {
    apply(schedule, plan,
          {.ranks = options.pipeline,
           .chunks = options.chunks_of(schedule),
           .micro_batches = micro_batches},
          options.ends(schedule), options.ranks_per_device);
  } catch (const InputError& error) {
    throw InputError(strategy.file(), strategy.path() + "/schedule", error.expected, error.found);
  }
  return plan;
}

}  // namespace stratagem::strategies

// Every strategy by name, and the plan that a scenario's options compose from them.
#pragma once

#include <string>
#include <vector>

#include "strategies/parallel/options.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/schedules/all.hpp"

namespace stratagem::strategies {

/// One way to split, place or order a model; a no-op where its degree in the options is 1.
struct Strategy {
  std::string key;      ///< the option that turns it on, named in errors
  std::string summary;  ///< one line for --help
  void (*apply)(Plan&, const Options&);
};

/// In the order in which they are applied.
const std::vector<Strategy>& all();

/// Applies every strategy, then the schedule. Errors name `strategy` (the scenario's object) and
/// the option.
Plan compose(const model::Graph& graph, int micro_batches, const Options& options,
             const JsonReader& strategy);

// Parts of layers one after another on a device, see coshard.cpp.
void coshard(Plan& plan, const Options& options);
// Megatron-LM's tensor parallelism, see tensor_parallel.cpp.
void tensor_parallel(Plan& plan, const Options& options);
/// The same for some operators over other ranks.
void divide_as_tensor_ranks(Plan& plan, const std::vector<model::OpId>& ops,
                            const placement::Axis& ranks, const Options& options);
// Tokens divided over ranks, see context_parallel.cpp.
void context_parallel(Plan& plan, const Options& options);
/// Does an operator divide the tokens where tensor parallelism would replicate it?
bool divides_tokens(const model::Operator& op, const Options& options);
// The same as a strategy, see sequence_parallel.cpp.
void sequence_parallel(Plan& plan, const Options& options);
// What single operators divide over the tensor ranks, see operators.cpp.
void operators(Plan& plan, const Options& options);
// FastFold's dynamic axial parallelism, see dynamic_axial.cpp.
void dynamic_axial(Plan& plan, const Options& options);
// Data parallelism, see data_parallel.cpp.
void data_parallel(Plan& plan, const Options& options);
/// The dimension along which data parallelism divides an operator: "b", or "" where it has none.
std::string batch_dimension(const Plan& plan, model::OpId op);
// Experts divided over data-parallel ranks, see expert_parallel.cpp.
void expert_parallel(Plan& plan, const Options& options);
// Slices of the tokens, see token_slices.cpp.
void token_slices(Plan& plan, const Options& options);
// Stages of consecutive segments, see pipeline.cpp.
void pipeline(Plan& plan, const Options& options);
// Optimizer steps on the host, see offload.cpp.
void offload(Plan& plan, const Options& options);
// Activations that wait on the host, see swap.cpp.
void swap_activations(Plan& plan, const Options& options);
// Shards of what belongs to the weights, see zero.cpp.
void zero(Plan& plan, const Options& options);
// Recomputation of layers or of their attention cores, see recompute.cpp.
void recompute(Plan& plan, const Options& options);

}  // namespace stratagem::strategies

// Every strategy by name, and the plan that a scenario's options compose from them.
#pragma once

#include <string>
#include <vector>

#include "base/options.hpp"
#include "strategies/parallel/options.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/schedules/all.hpp"

namespace stratagem::strategies {

/// Ranks that a strategy adds to the devices.
struct RankKind {
  std::string name;                       ///< in "rank_order": "tp"
  int (*size)(const Options&) = nullptr;  ///< how many
  bool outermost = false;                 ///< unless the user says another order
  std::string within;                     ///< without a name: those that these divide, "dp"
};

/// One way to split, place or order a model; a no-op where its first option is left out. A file of
/// this folder defines a function that returns it, and all.cpp names that function.
struct Strategy {
  OptionList<Options> options;  ///< keys of a strategy object; errors name the first
  /// Throws InputError; the path is below the first option.
  void (*apply)(Plan&, const Options&);
  /// Sets what follows from all options, once they are read. Throws InputError for what cannot go
  /// together.
  void (*complete)(Options&, const JsonReader& strategy) = nullptr;
  RankKind ranks = {};  ///< without a name: it has none of its own

  [[nodiscard]] const std::string& key() const { return options.front().key; }
};

/// In the order in which they are applied.
const std::vector<Strategy>& all();
/// All keys of a strategy object.
std::vector<OptionText> option_texts();

/// The path in a scenario of the option whose value goes to `place`, a member of `options`.
std::string path_at(Options& options, const void* place);
/// The same of a member of any, or a member of a group of members: path_of(&Options::swap) is
/// "/strategy/swap".
template <typename... Members>
std::string path_of(Members... members) {
  Options options;
  return path_at(options, &(options.*....*members));
}

/// Applies every strategy. Errors name `strategy` (the scenario's object) and the option.
Plan compose(const model::Graph& graph, int micro_batches, const Options& options,
             const JsonReader& strategy);

/// What tensor parallelism does, for some operators over other ranks.
void divide_as_tensor_ranks(Plan& plan, const std::vector<model::OpId>& ops,
                            const placement::Axis& ranks, const Options& options);
/// Does an operator divide the tokens where tensor parallelism would replicate it?
bool divides_tokens(const model::Operator& op, const Options& options);
/// Do several ranks have the same weights, as those that divide the batch or the tokens do?
bool repeats_weights(const Options& options);
/// Refuses models that have a product without a token dimension "s": every one of the ranks that
/// divide the tokens would compute it whole. Throws InputError.
void check_products(const model::Graph&, int ranks);
/// How ranks that divide the tokens divide an operator: a replica on each where it has none.
Split tokens_of(const model::Operator& op, int ranks);
/// The dimension along which data parallelism divides an operator: "b", or "" where it has none.
std::string batch_dimension(const Plan& plan, model::OpId op);

}  // namespace stratagem::strategies

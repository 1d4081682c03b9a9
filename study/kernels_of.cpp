// Lowers every run, with a profile that has only data types.
#include "study/kernels_of.hpp"

#include <optional>
#include <set>
#include <variant>

#include "base/input_error.hpp"
#include "lowering/lower.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"

namespace stratagem::study {
namespace {

/// Scenarios want constants of the data types that their runs have.
cost::Profile stand_in() {
  cost::Profile profile;
  profile.name = "none";
  for (const model::DataType type : model::data_types()) {
    profile.peak[model::to_text(type)] = {};
    profile.kernels.gemm[model::to_text(type)] = {};
  }
  profile.kernels.attention.emplace(cost::usual_attention, std::map<int, cost::AttentionPasses>{});
  return profile;
}

void add_kernels(const Run& run, std::set<cost::Kernel>& kernels) {
  const strategies::Plan plan = plan_of(run);
  const program::Program program = lowering::lower(plan, run.stack, run.training);
  for (const program::Block& block : program.blocks) {
    for (const program::Task& task : block.tasks)
      if (const auto* kernel = std::get_if<cost::Kernel>(&task.work)) kernels.insert(*kernel);
  }
}

}  // namespace

std::vector<cost::Kernel> kernels_of_scenario(const std::string& file) {
  const Scenario scenario = read_scenario(file, stand_in());
  std::set<cost::Kernel> kernels;
  std::optional<InputError> refused;
  for (const Run& run : scenario.runs) {
    try {
      add_kernels(run, kernels);
    } catch (const InputError& error) {
      if (!refused) refused = located(run, error);
    }
  }
  if (kernels.empty() && refused) throw *refused;
  return {kernels.begin(), kernels.end()};
}

}  // namespace stratagem::study

// Simulates phases, and adds their times step by step.
#include "study/workflow/outcome.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/input_error.hpp"
#include "study/workflow/weight_transfers.hpp"

namespace stratagem::study {
namespace {

WorkflowOutcome simulated(const Workflow& workflow, const SimulateOptions& options) {
  std::vector<SimulatedPhase> all;
  for (const std::vector<Phase>& step : workflow.steps) {
    for (const Phase& phase : step) all.push_back(simulate_phase(phase, options));
  }
  add_weight_transfers(all);
  WorkflowOutcome result{.name = workflow.name, .pools = memory_of_pools(all)};
  auto next = all.begin();
  for (const std::vector<Phase>& step : workflow.steps) {
    std::map<std::string, Seconds> ends;  // by pool
    for (std::size_t i = 0; i < step.size(); ++i, ++next) {
      PhaseOutcome& outcome = next->outcome;
      Seconds& end = ends.try_emplace(outcome.pool, result.time).first->second;
      outcome.begin = end;
      end += outcome.time;
      result.phases.push_back(std::move(outcome));
    }
    for (const auto& [pool, end] : ends) result.time = std::max(result.time, end);
  }
  for (const PoolMemory& pool : result.pools) result.gpus += pool.gpus;
  return result;
}

}  // namespace

bool WorkflowOutcome::fits() const { return std::ranges::all_of(pools, &PoolMemory::fits); }

int WorkflowOutcome::answered() const {
  int samples = 0;
  for (const PhaseOutcome& phase : phases) {
    if (phase.generation) samples += phase.repeat * phase.samples;
  }
  return samples;
}

WorkflowOutcome simulate_workflow(const Workflow& workflow, const SimulateOptions& options) {
  try {
    return simulated(workflow, options);
  } catch (const InputError& error) {
    return {.name = workflow.name, .refused = error.what()};
  }
}

}  // namespace stratagem::study

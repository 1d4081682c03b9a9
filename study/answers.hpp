// All that a scenario asks: its runs, what would change them, and its workflows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study/results.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "study/workflow/outcome.hpp"

namespace stratagem::study {

/// Is told how many steps of a kind of work are done, of how many; from any thread.
using Tell = std::function<void(const std::string& steps, std::size_t done, std::size_t all)>;

/// What is wanted beside figures.
struct Wanted {
  bool remedies = false;  ///< of runs that do not fit
  bool gains = false;     ///< of runs that fit
  int threads = 1;
  SimulateOptions options = {};  ///< of workflows, and of runs unless `options_of` is set
  std::function<SimulateOptions(const Run&)> options_of = {};
  /// Is shown each run before its program and timeline go; from several threads.
  std::function<void(std::size_t, const Simulated&)> show = {};
  Tell tell = {};
};

struct Answers {
  std::vector<Result> results;
  std::vector<WorkflowOutcome> workflows;
  /// Results of runs that train or score. A run that only a workflow's generation uses has no
  /// iteration of its own to report.
  std::vector<Result> of_runs;
};

/// Simulates runs and workflows. `workflows` are the scenario's, or none.
Answers answer(const Scenario& scenario, const std::vector<Workflow>& workflows,
               const Wanted& wanted);

/// Leaves the run of this name, or, with `varied`, the variants that a grid made of it. Returns
/// whether there is one; else all runs stay.
bool keep_alone(Scenario& scenario, const std::string& name, bool varied);

}  // namespace stratagem::study

// Simulates on several threads; answers do not depend on how many.
#include "study/answers.hpp"

#include "base/parallel.hpp"

namespace stratagem::study {
namespace {

/// Works on all indices, and tells what is done.
void work_on(const std::string& steps, std::size_t count, const Wanted& wanted,
             const std::function<void(std::size_t)>& work) {
  const auto tell = [&](std::size_t done) {
    if (wanted.tell) wanted.tell(steps, done, count);
  };
  if (count > 0) tell(0);
  for_each_index(count, wanted.threads, work, tell);
}

std::vector<Result> simulate_runs(const Scenario& scenario, const Wanted& wanted) {
  std::vector<Outcome> outcomes(scenario.runs.size());
  work_on("runs", scenario.runs.size(), wanted, [&](std::size_t i) {
    const Run& run = scenario.runs[i];
    Simulated simulated =
        simulate_or_refuse(run, wanted.options_of ? wanted.options_of(run) : wanted.options);
    if (wanted.show) wanted.show(i, simulated);
    outcomes[i] = std::move(simulated.outcome);
  });
  return compare(scenario, std::move(outcomes));
}

void find_changes(Result& result, const Wanted& wanted) {
  if (wanted.remedies && result.outcome.status == Outcome::Status::out_of_memory)
    result.remedies = remedies(*result.run, 3, wanted.threads);
  if (wanted.gains && result.outcome.status == Outcome::Status::ok)
    result.gains = gains(*result.run, wanted.threads);
}

std::vector<WorkflowOutcome> simulate_workflows(const std::vector<Workflow>& workflows,
                                                const Wanted& wanted) {
  std::vector<WorkflowOutcome> outcomes(workflows.size());
  work_on("workflows", workflows.size(), wanted,
          [&](std::size_t i) { outcomes[i] = simulate_workflow(workflows[i], wanted.options); });
  return outcomes;
}

}  // namespace

Answers answer(const Scenario& scenario, const std::vector<Workflow>& workflows,
               const Wanted& wanted) {
  Answers answers{.results = simulate_runs(scenario, wanted),
                  .workflows = simulate_workflows(workflows, wanted),
                  .of_runs = {}};
  const bool tells = wanted.tell && (wanted.remedies || wanted.gains);
  for (std::size_t i = 0; i < answers.results.size(); ++i) {
    Result& result = answers.results[i];
    if (tells) wanted.tell("runs: what would change them", i, answers.results.size());
    if (only_generates(*result.run, workflows)) continue;
    find_changes(result, wanted);
    answers.of_runs.push_back(result);
  }
  return answers;
}

bool keep_alone(Scenario& scenario, const std::string& name, bool varied) {
  std::vector<Run> kept;
  for (const Run& run : scenario.runs) {
    if (run.name == name || (varied && run.name.starts_with(name + ", "))) kept.push_back(run);
  }
  if (kept.empty()) return false;
  scenario.runs = std::move(kept);
  return true;
}

}  // namespace stratagem::study

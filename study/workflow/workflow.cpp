// Reads workflows, and checks their phases against the scenario's runs.
#include "study/workflow/workflow.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace stratagem::study {
namespace {

constexpr int most_repeats = 1'000'000;

const Run& run_named(const Scenario& scenario, const JsonReader& name) {
  std::vector<std::string> names;
  for (const Run& run : scenario.runs) names.push_back(run.name);
  const std::string wanted = name.one_of(names);
  return *std::ranges::find(scenario.runs, wanted, &Run::name);
}

/// A run's own sequence is the prompt and its answer.
int answer_of(const Run& run, const JsonReader& tokens) {
  const std::int64_t most = run.batch.sequence - 1;
  const auto answer = static_cast<int>(tokens.between(1, std::max<std::int64_t>(1, most)));
  if (run.plan) tokens.fail("a run with a strategy, whose passes are of different lengths");
  if (run.options.pipeline_ranks() > 1)
    tokens.fail(
        "a run without stages: how passes of single tokens follow each other through a "
        "pipeline is not modelled",
        "pipeline " + std::to_string(run.options.pipeline_ranks()));
  return answer;
}

Phase read_phase(const Scenario& scenario, const JsonReader& json) {
  const Run& run = run_named(scenario, json.at("run"));
  const auto text = [&](const char* key, const std::string& otherwise) {
    const auto said = json.find(key);
    return said ? said->text() : otherwise;
  };
  const std::string name = text("name", run.name);
  Phase phase{.name = name,
              .run = &run,
              .weights = text("weights", run.name),
              .pool = text("pool", "all"),
              .said = json};
  if (const auto repeat = json.find("repeat"))
    phase.repeat = static_cast<int>(repeat->between(1, most_repeats));
  if (const auto answer = json.find("answer_tokens")) {
    if (run.refused)
      answer->skip();
    else
      phase.answer_tokens = answer_of(run, *answer);
  }
  return phase;
}

/// A phase alone, or phases side by side.
std::vector<Phase> read_step(const Scenario& scenario, const JsonReader& json) {
  if (!json.is_array()) return {read_phase(scenario, json)};
  std::vector<Phase> phases;
  for (const JsonReader& one : json.elements()) phases.push_back(read_phase(scenario, one));
  if (phases.empty()) json.fail("at least one phase");
  return phases;
}

void check_phases(const Workflow& workflow) {
  std::set<std::string> names;
  std::map<std::string, int> gpus;  // by pool
  for (const std::vector<Phase>& step : workflow.steps) {
    for (const Phase& phase : step) {
      if (!names.insert(phase.name).second)
        phase.said.fail("a \"name\" that no phase before it has", phase.name);
      if (phase.run->refused) continue;
      const int of_pool = gpus.emplace(phase.pool, phase.run->gpus).first->second;
      if (of_pool != phase.run->gpus)
        phase.said.at("run").fail(
            "a run on the " + std::to_string(of_pool) + " GPUs of pool " + phase.pool,
            std::to_string(phase.run->gpus) + " GPUs");
    }
  }
}

}  // namespace

std::vector<Workflow> read_workflows(const Scenario& scenario) {
  std::vector<Workflow> all;
  if (!scenario.workflows) return all;
  for (const JsonReader& json : scenario.workflows->elements()) {
    Workflow workflow{.name = json.at("name").text(), .steps = {}};
    if (std::ranges::find(all, workflow.name, &Workflow::name) != all.end())
      json.at("name").fail("a name that no workflow before it has", workflow.name);
    for (const JsonReader& step : json.at("phases").elements())
      workflow.steps.push_back(read_step(scenario, step));
    if (workflow.steps.empty()) json.at("phases").fail("at least one phase");
    check_phases(workflow);
    all.push_back(std::move(workflow));
  }
  scenario.workflows->finish();
  return all;
}

}  // namespace stratagem::study

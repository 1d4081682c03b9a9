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

/// Refuses runs of which single tokens cannot be passed.
void check_generates(const Run& run, const JsonReader& tokens) {
  const strategies::Options& options = run.options;
  if (run.plan) tokens.fail("a run with a strategy, since a plan is of sequences of one length");
  if (cost::trains(run.training.optimizer))
    tokens.fail("a run with \"optimizer\": \"none\"", run.training.optimizer.name);
  if (options.pipeline_ranks() > 1) {
    tokens.fail("a run without stages, since generation through a pipeline is not modelled",
                "pipeline " + std::to_string(options.pipeline_ranks()));
  }
  if (options.division.tokens)
    tokens.fail("a run without \"sequence_parallel\", which cannot divide single tokens", "true");
  for (const char* key : {"context", "ulysses"}) {
    if (run.strategy.has(key) && run.strategy.at(key).whole_number() > 1)
      tokens.fail("a run without \"" + std::string(key) + "\", which cannot divide single tokens",
                  run.strategy.at(key).dump());
  }
  if (std::ranges::any_of(run.graph->tensors, [](const model::Tensor& tensor) {
        return tensor.role == model::Role::cache;
      }))
    tokens.fail("a run without a \"cache\", since each pass of a generation has its own");
}

/// The other tokens of the run's sequence are the prompt.
int answer_of(const Run& run, const JsonReader& tokens) {
  check_generates(run, tokens);
  if (run.batch.sequence < 2) tokens.fail("a run of at least 2 tokens, a prompt and an answer");
  return static_cast<int>(tokens.between(1, run.batch.sequence - 1));
}

Phase read_phase(const Scenario& scenario, const JsonReader& json) {
  const Run& run = run_named(scenario, json.at("run"));
  const auto text = [&](const char* key, const std::string& otherwise) {
    const auto said = json.find(key);
    if (said && said->text().empty()) said->fail("a name");
    return said ? said->text() : otherwise;
  };
  const std::string name = text("name", run.name);
  Phase phase{.name = name,
              .run = &run,
              .weights = text("weights", run.name),
              .pool = text("pool", "all"),
              .json = json};
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

/// A pool is one set of GPUs.
void check_pool(const Phase& phase, const Phase& first) {
  const auto check = [&](const std::string& there, const std::string& here) {
    if (there == here) return;
    phase.json.at("run").fail(
        "a run on " + there + ", as phase \"" + first.name + "\" of pool \"" + phase.pool + "\"",
        here);
  };
  const Run &run = *phase.run, &other = *first.run;
  check(std::to_string(other.gpus) + " GPUs", std::to_string(run.gpus) + " GPUs");
  check(other.cluster.design().name, run.cluster.design().name);
  check("profile " + other.profile.name, "profile " + run.profile.name);
}

void check_phases(const Workflow& workflow) {
  std::set<std::string> names;
  std::map<std::string, const Phase*> first;  // by pool
  for (const std::vector<Phase>& step : workflow.steps) {
    for (const Phase& phase : step) {
      if (!names.insert(phase.name).second)
        phase.json.fail("a \"name\" that no phase before it has", phase.name);
      if (phase.run->refused) continue;
      check_pool(phase, *first.emplace(phase.pool, &phase).first->second);
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

bool only_generates(const Run& run, const std::vector<Workflow>& workflows) {
  int generations = 0, others = 0;
  for (const Workflow& workflow : workflows) {
    for (const std::vector<Phase>& step : workflow.steps) {
      for (const Phase& phase : step) {
        if (phase.run == &run) ++(phase.answer_tokens > 0 ? generations : others);
      }
    }
  }
  return generations > 0 && others == 0;
}

}  // namespace stratagem::study

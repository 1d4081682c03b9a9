// `stratagem simulate`: every run of a scenario, predicted.
#include "study/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/parallel.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/expanded.hpp"
#include "commands/jobs.hpp"
#include "commands/outputs.hpp"
#include "program/program.hpp"
#include "program/program_text.hpp"
#include "report/html/page.hpp"
#include "report/html/picture.hpp"
#include "report/memory_table.hpp"
#include "report/report.hpp"
#include "report/run_columns.hpp"
#include "report/trace.hpp"
#include "report/why.hpp"
#include "report/workflows.hpp"
#include "study/plan_of.hpp"
#include "study/results.hpp"
#include "study/scenario.hpp"
#include "study/workflow/outcome.hpp"

namespace stratagem::commands {
namespace {

std::string column_names() {
  std::vector<std::string> names;
  for (const report::RunColumn& column : report::run_columns()) names.push_back(column.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<const report::RunColumn*> chosen_columns(const Arguments& asked) {
  std::vector<const report::RunColumn*> chosen;
  std::vector<std::string> names;
  for (const report::RunColumn& column : report::run_columns()) names.push_back(column.name);
  for (const std::string& name : asked.texts("columns")) {
    const auto found = std::ranges::find(report::run_columns(), name, &report::RunColumn::name);
    if (found == report::run_columns().end()) {
      const auto near = nearest(name, names);
      throw UsageError(fmt::format("--columns: expected one of {}{}, found {}", column_names(),
                                   near ? " (did you mean \"" + *near + "\"?)" : "", name));
    }
    if (name == "cost" && !asked.has("price"))
      throw UsageError("--columns=cost: expected --price, what a GPU costs for an hour");
    chosen.push_back(&*found);
  }
  return chosen;
}

/// Leaves the run that was named, or the variants that a grid made of it.
void keep_alone(study::Scenario& scenario, const Arguments& asked) {
  const std::string name = asked.text("run");
  std::vector<study::Run> kept;
  for (study::Run& run : scenario.runs) {
    if (run.name == name || (asked.has("grid") && run.name.starts_with(name + ", ")))
      kept.push_back(std::move(run));
  }
  if (kept.empty()) chosen_run(scenario, asked);  // says which names there are
  scenario.runs = std::move(kept);
}

std::optional<double> price(const Arguments& asked) {
  if (!asked.has("price")) return std::nullopt;
  if (!(asked.real("price") > 0) || asked.real("price") > 1e6)
    throw UsageError("--price: expected more than 0, and at most 1e6");
  return asked.real("price");
}

/// What was asked for, for people.
std::string printed(const study::Scenario& scenario, const std::vector<study::Result>& results,
                    const std::vector<study::WorkflowOutcome>& workflows, const Arguments& asked) {
  if (asked.has("accuracy")) return report::accuracy(results);
  if (asked.has("memory")) return report::memory_table(results);
  if (asked.has("columns")) return report::table_of(results, chosen_columns(asked), price(asked));
  std::string text = results.empty() ? scenario.question + "\n" : report::table(scenario, results);
  text += report::workflow_text(workflows);
  if (scenario.workflows && workflows.empty())
    text += "\nWorkflows are left out with --run and --grid.\n";
  if (!asked.has("price")) return text;
  const auto& all = report::run_columns();
  const auto cost = std::ranges::find(all, "cost", &report::RunColumn::name);
  return text + "\nCost of a billion tokens, at this price of a GPU:\n\n" +
         report::table_of(results, {&*cost}, price(asked));
}

Options simulate_options() {
  Options options("stratagem simulate", "Predict time and memory of every run of a scenario.");
  options.text("scenario", "scenario file");
  options.text("json", "write the results as JSON");
  options.text("csv", "write all columns of all runs as CSV");
  options.text("report", "write a page with tables and pictures as one HTML file");
  options.text("trace", "write a Perfetto trace of one run");
  options.text("program", "write the lowered program of one run as text");
  options.flag("expanded",
               "with --program: write the programs of all runs into that folder, a file each, and "
               "simulate none");
  options.text("run",
               "the run to trace or write (default: the first); without --trace and --program, the "
               "only one to simulate",
               "");
  options.texts("columns", "print these columns alone, of: " + column_names());
  options.real("price",
               "what a GPU costs for an hour: gives the column \"cost\" of a billion tokens");
  options.flag("accuracy", "print what was measured beside what is predicted, as Markdown");
  options.flag("no-remedies", "do not look for changes with which runs fit that do not");
  options.flag("why",
               "also print where time and memory go, and what twice as much of each thing "
               "would change");
  options.flag("memory", "print what fills every device's memory, and when");
  add_jobs(options);
  options.flag("unfolded", "simulate every device, not one per class of equal ones");
  options.flag("exact",
               "simulate all turns of loops and all iterations, also where the simulation repeats");
  add_settings(options);
  options.texts("grid", "try several values of a key in every run, as in tensor=1,2,4");
  options.positional({"scenario"}, "SCENARIO");
  return options;
}

/// What was asked for about the chosen run; nothing if it was refused.
std::vector<Output> outputs_about(const study::Run& run, const study::Simulated& simulated,
                                  const Arguments& asked) {
  std::vector<Output> outputs;
  if (simulated.outcome.status == study::Outcome::Status::refused) return outputs;
  if (asked.has("trace")) {
    outputs.push_back(
        {asked.text("trace"),
         report::chrome_trace(simulated.program, simulated.timeline,
                              report::trace_of(run.name, simulated), simulated.outcome.hosts),
         " (open it in https://ui.perfetto.dev)"});
  }
  if (asked.has("program")) {
    const strategies::Plan plan = study::plan_of(run);
    outputs.push_back({asked.text("program"), program::to_text(simulated.program, plan.graph(),
                                                               program::CallText::in_loops)});
  }
  return outputs;
}

study::SimulateOptions simulate_options_of(const Arguments& asked) {
  return {.folded = !asked.has("unfolded"),
          .repeats = asked.has("exact") ? sim::Repeats::simulated : sim::Repeats::left_out};
}

/// All runs, what was asked for about the chosen one, and what a page draws of each, if one was
/// asked for.
struct All {
  std::vector<study::Result> results;
  std::vector<Output> outputs;
  Json pictures = Json::array();
};

All simulate_all(const study::Scenario& scenario, const Arguments& asked) {
  const bool one = asked.has("trace") || asked.has("program");
  const study::Run& chosen = one ? chosen_run(scenario, asked) : scenario.runs.front();
  All all;
  const auto options_of = [&](const study::Run& run) {
    study::SimulateOptions options = simulate_options_of(asked);
    if (asked.has("report") || (asked.has("trace") && &run == &chosen))
      options.repeats = sim::Repeats::simulated;
    return options;
  };
  std::vector<study::Outcome> outcomes(scenario.runs.size());
  std::vector<Json> pictures(scenario.runs.size());
  for_each_index(scenario.runs.size(), jobs(asked), [&](std::size_t i) {
    const study::Run& run = scenario.runs[i];
    study::Simulated simulated = study::simulate_or_refuse(run, options_of(run));
    if (&run == &chosen) all.outputs = outputs_about(run, simulated, asked);
    if (asked.has("report")) pictures[i] = report::picture(run, simulated);
    outcomes[i] = std::move(simulated.outcome);
  });
  all.results = study::compare(scenario, std::move(outcomes));
  for (Json& picture : pictures) all.pictures.push(std::move(picture));
  return all;
}

void find_remedies(study::Result& result, int threads) {
  if (result.outcome.status == study::Outcome::Status::out_of_memory)
    result.remedies = study::remedies(*result.run, 3, threads);
}

void find_gains(study::Result& result, int threads) {
  if (result.outcome.status == study::Outcome::Status::ok)
    result.gains = study::gains(*result.run, threads);
}

std::string why(const std::vector<study::Result>& results) {
  std::vector<report::Explained> runs;
  for (const study::Result& result : results) {
    if (result.gains) runs.push_back({result.run->name, &result.outcome, *result.gains});
  }
  return runs.empty() ? "" : "\n" + report::why_text(runs);
}

std::vector<study::WorkflowOutcome> simulate_workflows(const std::vector<study::Workflow>& all,
                                                       const Arguments& asked) {
  std::vector<study::WorkflowOutcome> outcomes(all.size());
  for_each_index(all.size(), jobs(asked), [&](std::size_t i) {
    outcomes[i] = study::simulate_workflow(all[i], simulate_options_of(asked));
  });
  return outcomes;
}

/// The workflows that are asked for: those of runs that are all simulated under their own names.
std::vector<study::Workflow> asked_workflows(const study::Scenario& scenario,
                                             const Arguments& asked) {
  const bool one = asked.has("run") && !asked.has("trace") && !asked.has("program");
  if (asked.has("grid")) return {};
  std::vector<study::Workflow> all = study::read_workflows(scenario);
  if (one) all.clear();
  return all;
}

/// Results without runs that only generations use: none of their passes is what such a run says.
std::vector<study::Result> without_generators(const std::vector<study::Result>& results,
                                              const std::vector<study::Workflow>& workflows) {
  std::vector<study::Result> rest;
  for (const study::Result& result : results) {
    if (!study::only_generates(*result.run, workflows)) rest.push_back(result);
  }
  return rest;
}

/// Looks for what was asked for: changes with which runs fit, and what twice as much would change.
void search_changes(std::vector<study::Result>& results,
                    const std::vector<study::Workflow>& workflows, const Arguments& asked) {
  const int threads = jobs(asked);
  const bool remedies = !asked.has("no-remedies") && !asked.has("accuracy");
  for (study::Result& result : results) {
    if (study::only_generates(*result.run, workflows)) continue;
    if (remedies) find_remedies(result, threads);
    if (asked.has("why")) find_gains(result, threads);
  }
}

std::string json_text(const study::Scenario& scenario, const std::vector<study::Result>& results,
                      const std::vector<study::WorkflowOutcome>& workflows) {
  Json json = report::to_json(scenario, results);
  if (!workflows.empty()) json.set("workflows", report::to_json(workflows));
  return json.text(2) + "\n";
}

/// A line for each workflow that is refused.
std::vector<std::string> refused(const std::vector<study::WorkflowOutcome>& workflows) {
  std::vector<std::string> lines;
  for (const study::WorkflowOutcome& workflow : workflows) {
    if (workflow.refused)
      lines.push_back(*workflow.refused + " (workflow \"" + workflow.name + "\")");
  }
  return lines;
}

int run_simulate(const std::vector<std::string>& line) {
  Options options = simulate_options();
  const Arguments asked(options, line);
  if (asked.helped()) return done;
  jobs(asked);
  price(asked);
  if (asked.has("columns")) chosen_columns(asked);
  if (asked.has("expanded")) return write_programs(asked);
  study::Scenario scenario = changed_scenario(asked);
  const std::vector<study::Workflow> workflows = asked_workflows(scenario, asked);
  if (asked.has("run") && !asked.has("trace") && !asked.has("program")) keep_alone(scenario, asked);
  auto [results, outputs, pictures] = simulate_all(scenario, asked);
  const std::vector<study::WorkflowOutcome> outcomes = simulate_workflows(workflows, asked);
  search_changes(results, workflows, asked);
  const std::vector<study::Result> shown = without_generators(results, workflows);
  if (asked.has("csv"))
    outputs.insert(outputs.begin(), {asked.text("csv"), report::csv_of(shown, price(asked))});
  if (asked.has("report")) {
    const std::string page = report::simulated_page(scenario, results, pictures);
    outputs.insert(outputs.begin(), {asked.text("report"), page, " (open it in a browser)"});
  }
  if (asked.has("json"))
    outputs.insert(outputs.begin(), {asked.text("json"), json_text(scenario, results, outcomes)});
  check_outputs(outputs, files_of(scenario));
  fmt::print(for_people(outputs), "{}{}", printed(scenario, shown, outcomes, asked), why(shown));
  write_below(outputs);
  std::vector<std::string> refusals = study::refusals(results);
  std::ranges::copy(refused(outcomes), std::back_inserter(refusals));
  return conclude(refusals, study::failures(results));
}

}  // namespace

Command simulate() {
  return {"simulate", "predict time and memory of every run of a scenario", &run_simulate};
}

}  // namespace stratagem::commands

// `stratagem simulate`: every run of a scenario, predicted.
#include "study/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/expanded.hpp"
#include "commands/jobs.hpp"
#include "commands/outputs.hpp"
#include "commands/progress.hpp"
#include "commands/traces.hpp"
#include "program/program.hpp"
#include "program/program_text.hpp"
#include "report/html/page.hpp"
#include "report/html/picture.hpp"
#include "report/memory_table.hpp"
#include "report/report.hpp"
#include "report/run_columns.hpp"
#include "report/why.hpp"
#include "report/workflows.hpp"
#include "study/answers.hpp"
#include "study/plan_of.hpp"
#include "study/results.hpp"
#include "study/scenario.hpp"

namespace stratagem::commands {
namespace {

std::vector<std::string> column_names() {
  std::vector<std::string> names;
  for (const report::RunColumn& column : report::run_columns()) names.push_back(column.name);
  return names;
}

std::vector<const report::RunColumn*> chosen_columns(const Arguments& asked) {
  std::vector<const report::RunColumn*> chosen;
  for (const std::string& name : asked.texts("columns")) {
    const auto found = std::ranges::find(report::run_columns(), name, &report::RunColumn::name);
    chosen.push_back(&*found);
  }
  return chosen;
}

/// Is something of one run written?
bool writes_one(const Arguments& asked) {
  return asked.has("trace") || asked.has("program") || asked.has("chakra");
}

/// Is one run alone to be simulated?
bool is_for_one(const Arguments& asked) { return asked.has("run") && !writes_one(asked); }

/// Does anything that is asked for have remedies in it?
bool shows_remedies(const Arguments& asked) {
  const bool other_table = asked.has("accuracy") || asked.has("memory") || asked.has("columns");
  return !other_table || asked.has("json") || asked.has("report");
}

/// Is it known of any run what its GPUs cost?
bool has_price(const study::Scenario& scenario) {
  return std::ranges::any_of(scenario.runs, [](const study::Run& run) {
    return !run.refused && run.cluster.design().price_per_gpu_hour.has_value();
  });
}

void check_costs(const study::Scenario& scenario, const Arguments& asked) {
  const std::vector<std::string> columns =
      asked.has("columns") ? asked.texts("columns") : std::vector<std::string>{};
  if (std::ranges::count(columns, "cost") > 0 && !has_price(scenario))
    throw UsageError(
        "--columns=cost: expected --price N or cluster.price_per_gpu_hour, what a GPU costs for an "
        "hour; found neither");
}

/// What was asked for, for people.
std::string printed(const study::Scenario& scenario, const study::Answers& answers,
                    const Arguments& asked) {
  const std::vector<study::Result>& results = answers.of_runs;
  if (asked.has("accuracy")) {
    const std::string measured = report::accuracy(results);
    return measured.empty() ? scenario.file + ": no run says what was \"measured\"\n" : measured;
  }
  if (asked.has("memory")) return report::memory_table(results);
  if (asked.has("columns")) return report::table_of(results, chosen_columns(asked));
  const auto sources =
      asked.has("provenance") ? report::Sources::in_full : report::Sources::in_one_line;
  std::string text =
      results.empty() ? scenario.question + "\n" : report::table(scenario, results, sources);
  text += report::workflow_text(answers.workflows);
  if (scenario.workflows && answers.workflows.empty())
    text += "\nWorkflows are left out with --run and --grid.\n";
  if (!has_price(scenario) || !report::any_measured(results)) return text;
  const auto& all = report::run_columns();
  const auto cost = std::ranges::find(all, "cost", &report::RunColumn::name);
  return text + "\nCost of a billion tokens, at these prices of GPUs:\n\n" +
         report::table_of(results, {&*cost});
}

Options simulate_options() {
  Options options("stratagem simulate", "Predict time and memory of every run of a scenario.");
  options.text("scenario", "scenario file");
  options.text("json", "write the results as JSON");
  options.text("csv", "write all columns of all runs as CSV");
  options.text("report", "write a page with tables and pictures as one HTML file").ending(".html");
  options.text("trace", "write a Perfetto trace of one run, packed if the name ends in .gz");
  options.texts("trace-devices",
                "with --trace: show these devices alone, as in 0,8 (default: one of each class of "
                "devices that do the same)");
  options.text("chakra",
               "write Chakra execution traces of one run into this folder, one file for each rank");
  options.text("program", "write the lowered program of one run as text");
  options.flag("expanded",
               "with --program: write the programs of all runs into that folder, a file each, and "
               "simulate none");
  options.text("run",
               "the run to trace or write (default: the first); without --trace, --chakra and "
               "--program, the only one to simulate",
               "");
  const std::vector<std::string> columns = column_names();
  options.texts("columns",
                fmt::format("print these columns alone, of: {}", fmt::join(columns, ", ")));
  options.among(columns);
  options.flag("accuracy", "print what was measured beside what is predicted, as Markdown");
  options.flag("provenance",
               "print which constants are assumed or fitted, and what is beyond measured sizes");
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
  add_price(options);
  options.texts("grid", "try several values of a key in every run, as in tensor=1,2,4");
  options.positional({"scenario"}, "SCENARIO");
  return options;
}

/// What was asked for about the chosen run; nothing if it was refused.
std::vector<Output> outputs_about(const study::Run& run, const study::Simulated& simulated,
                                  const Arguments& asked) {
  std::vector<Output> outputs;
  if (simulated.outcome.status == study::Outcome::Status::refused) return outputs;
  if (asked.has("trace")) outputs.push_back(trace_of(run, simulated, asked));
  if (asked.has("chakra")) add_execution_traces(simulated, asked.text("chakra"), outputs);
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
  study::Answers answers;
  std::vector<Output> outputs;
  Json pictures = Json::array();
};

All simulate_all(const study::Scenario& scenario, const std::vector<study::Workflow>& workflows,
                 const Arguments& asked) {
  const bool one = writes_one(asked);
  const study::Run& chosen = one ? chosen_run(scenario, asked) : scenario.runs.front();
  check_traces(chosen, asked);
  All all;
  std::vector<Json> pictures(scenario.runs.size());
  study::Wanted wanted{.remedies = shows_remedies(asked) && !asked.has("no-remedies"),
                       .gains = asked.has("why"),
                       .threads = jobs(asked),
                       .options = simulate_options_of(asked)};
  wanted.options_of = [&](const study::Run& run) {
    study::SimulateOptions options = wanted.options;
    const bool traced = asked.has("trace") || asked.has("chakra");
    if (asked.has("report") || (traced && &run == &chosen))
      options.repeats = sim::Repeats::simulated;
    return options;
  };
  wanted.show = [&](std::size_t i, const study::Simulated& simulated) {
    const study::Run& run = scenario.runs[i];
    if (&run == &chosen) all.outputs = outputs_about(run, simulated, asked);
    if (asked.has("report")) pictures[i] = report::picture(run, simulated);
  };
  Progress progress("simulating");
  wanted.tell = [&](const std::string& steps, std::size_t done, std::size_t count) {
    if (count > 0) progress.tell(steps, done, count);
  };
  all.answers = study::answer(scenario, workflows, wanted);
  for (Json& picture : pictures) all.pictures.push(std::move(picture));
  return all;
}

std::string why(const std::vector<study::Result>& results) {
  std::vector<report::Explained> runs;
  for (const study::Result& result : results) {
    if (result.gains) runs.push_back({result.run->name, &result.outcome, *result.gains});
  }
  return runs.empty() ? "" : "\n" + report::why_text(runs);
}

/// The workflows that are asked for: those of runs that are all simulated under their own names.
std::vector<study::Workflow> asked_workflows(const study::Scenario& scenario,
                                             const Arguments& asked) {
  if (asked.has("grid")) return {};
  std::vector<study::Workflow> all = study::read_workflows(scenario);
  if (is_for_one(asked)) all.clear();
  return all;
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
  const Arguments asked(simulate_options(), line);
  if (asked.helped()) return done;
  jobs(asked);
  if (asked.has("columns")) chosen_columns(asked);
  if (asked.has("expanded")) return write_programs(asked);
  study::Scenario scenario = changed_scenario(asked);
  check_costs(scenario, asked);
  const std::vector<study::Workflow> workflows = asked_workflows(scenario, asked);
  if (is_for_one(asked) && !study::keep_alone(scenario, asked.text("run"), asked.has("grid")))
    chosen_run(scenario, asked);  // says which names there are
  auto [answers, outputs, pictures] = simulate_all(scenario, workflows, asked);
  if (asked.has("csv"))
    outputs.insert(outputs.begin(), {asked.text("csv"), report::csv_of(answers.of_runs)});
  if (asked.has("report")) {
    const std::string page = report::simulated_page(scenario, answers.results, pictures);
    outputs.insert(outputs.begin(), {asked.text("report"), page, " (open it in a browser)"});
  }
  if (asked.has("json")) {
    const Json json = report::to_json(scenario, answers);
    outputs.insert(outputs.begin(), {asked.text("json"), json.text(2) + "\n"});
  }
  check_outputs(outputs, files_of(scenario));
  fmt::print(for_people(outputs), "{}{}", printed(scenario, answers, asked), why(answers.of_runs));
  write_below(outputs);
  std::vector<std::string> refusals = study::refusals(answers.results);
  std::ranges::copy(refused(answers.workflows), std::back_inserter(refusals));
  return conclude(refusals, study::failures(answers.results));
}

}  // namespace

Command simulate() {
  return {"simulate", "predict time and memory of every run of a scenario", &simulate_options,
          &run_simulate};
}

}  // namespace stratagem::commands

// `stratagem partition`: how a plan best divides its model into stages, or its tokens into slices.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/jobs.hpp"
#include "commands/outputs.hpp"
#include "commands/progress.hpp"
#include "report/partition_report.hpp"
#include "search/partition/searcher.hpp"
#include "search/partition/space_gap.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::commands {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const search::Searcher& searcher : search::searchers()) all.push_back(searcher.name);
  return all;
}

Options partition_options() {
  Options options("stratagem partition",
                  "Divide a run's layers into stages, or its tokens into slices, so that an "
                  "objective is least.");
  options.text("scenario", "scenario file");
  options.text("run", "the run whose model to divide (default: the first)", "");
  options.text("by", fmt::format("searcher: {}", fmt::join(names(), ", ")), "balanced");
  options.among(names());
  options.flag("gap", "simulate all other divisions, too: is one of them faster?");
  options.text("json", "write the answer as JSON");
  add_jobs(options);
  add_settings(options);
  options.positional({"scenario"}, "SCENARIO");
  return options;
}

const search::Searcher& chosen_searcher(const Arguments& asked) {
  return *std::ranges::find(search::searchers(), asked.text("by"), &search::Searcher::name);
}

/// What is found for a run, simulated beside the run itself; nothing if no division fits.
std::optional<report::Partition> divided(const study::Run& run, const search::Searcher& searcher,
                                         const Arguments& asked) {
  std::optional<search::Proposal> found = searcher.propose(run);
  if (!found) return std::nullopt;
  const study::Run with_found =
      study::with_settings(run, Json::object().set("strategy", found->strategy));
  report::Partition result{run,
                           searcher,
                           std::move(*found),
                           study::simulate_or_refuse(run, {}).outcome,
                           study::simulate_or_refuse(with_found, {}).outcome,
                           {}};
  if (asked.has("gap") && result.proposed.status == study::Outcome::Status::ok)
    result.gap = search::space_gap(run, searcher, result.proposal,
                                   result.proposed.metrics->iteration_time, jobs(asked));
  return result;
}

std::optional<report::Partition> located(const study::Run& run, const search::Searcher& searcher,
                                         const Arguments& asked) {
  try {
    if (run.refused) throw InputError(*run.refused);
    const Progress progress("dividing the model");
    return divided(run, searcher, asked);
  } catch (const InputError& error) {
    throw study::located(run, error);
  }
}

int run_partition(const std::vector<std::string>& line) {
  const Arguments asked(partition_options(), line);
  if (asked.helped()) return done;
  const search::Searcher& searcher = chosen_searcher(asked);
  const study::Scenario scenario = changed_scenario(asked);
  const study::Run& run = chosen_run(scenario, asked);
  std::vector<Output> outputs;
  if (asked.has("json")) outputs.push_back({asked.text("json"), {}});
  check_outputs(outputs, files_of(scenario));
  const std::optional<report::Partition> answer = located(run, searcher, asked);
  if (!answer) {
    fmt::print("No division of \"{}\" fits into a device's memory.\n", run.name);
    return check_failed;
  }
  for (Output& output : outputs) output.text = report::partition_json(*answer).text(2) + "\n";
  fmt::print(for_people(outputs), "{}", report::partition_table(*answer));
  write_below(outputs);
  return answer->proposed.status == study::Outcome::Status::ok ? done : check_failed;
}

}  // namespace

Command partition() {
  return {"partition", "divide a run's layers or tokens so that an objective is least",
          &partition_options, &run_partition};
}

}  // namespace stratagem::commands

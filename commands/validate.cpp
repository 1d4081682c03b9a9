// `stratagem validate`: predictions beside measurements, over many scenarios.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string>
#include <vector>

#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/jobs.hpp"
#include "commands/outputs.hpp"
#include "commands/progress.hpp"
#include "report/html/page.hpp"
#include "report/report.hpp"
#include "report/validation.hpp"
#include "study/figures.hpp"
#include "study/validation.hpp"

namespace stratagem::commands {
namespace {

/// Those of the first folder named that has some, or those of the command line.
study::Limits limits_for(const Arguments& asked) {
  study::Limits limits;
  for (const std::string& name : asked.texts("scenarios")) {
    const std::filesystem::path file = std::filesystem::path(name) / study::limits_file;
    if (!std::filesystem::exists(file)) continue;
    limits = study::read_limits(file.string());
    break;
  }
  if (asked.has("median"))
    limits.medians = {{.group = "", .figure = "", .value = asked.real("median") / 100}};
  if (asked.has("wrong")) {
    limits.wrong_verdicts.emplace();
    limits.wrong_verdicts->push_back({"", "fits", static_cast<double>(asked.whole("wrong"))});
  }
  return limits;
}

Options validate_options() {
  Options options("stratagem validate",
                  "Compare what is predicted with what was measured, over many scenarios.");
  options.texts("scenarios",
                "scenario files, or folders of them; a folder's validate.json has its limits");
  options.text("figure", "this figure only, such as iteration_time, or fits", "");
  options.among({study::figure_names.begin(), study::figure_names.end()});
  options.text("group", "groups only whose names contain this", "");
  options.flag("summary", "print no single figures");
  options.real("median", "highest median of the absolute errors of any figure in any group, in %");
  options.whole("wrong", "highest number of wrong verdicts on what fits in any group");
  options.text("json", "write all of it as JSON");
  options.text("report", "write a page with tables and pictures as one HTML file").ending(".html");
  add_jobs(options);
  options.positional({"scenarios"}, "SCENARIOS...");
  return options;
}

study::Selection selection_of(const Arguments& asked) {
  return {.figure = asked.text("figure"), .group = asked.text("group")};
}

/// Reads the scenarios and simulates what is selected.
std::vector<study::Played> play(const std::vector<std::string>& files,
                                const study::Selection& selection, int threads) {
  Progress progress("reading scenarios");
  return study::play_files(files, selection, threads,
                           [&](const std::string& steps, std::size_t done, std::size_t all) {
                             progress.tell(steps, done, all);
                           });
}

int run_validate(const std::vector<std::string>& line) {
  const Arguments asked(validate_options(), line);
  if (asked.helped()) return done;
  if (!asked.has("scenarios")) throw UsageError("missing scenarios");
  const study::Selection selection = selection_of(asked);
  const study::Limits limits = study::selected(limits_for(asked), selection);
  const std::vector<std::string> files = study::scenario_files(asked.texts("scenarios"));
  const std::vector<study::Played> played = play(files, selection, jobs(asked));
  const study::Validation validation = study::validate(played, selection);
  if (validation.groups().empty() && validation.refused.empty())
    throw UsageError(fmt::format("no run of {} says what was \"measured\"{}{}",
                                 fmt::join(asked.texts("scenarios"), ", "),
                                 asked.has("group") ? ", in group " + selection.group : "",
                                 asked.has("figure") ? ", as " + selection.figure : ""));
  std::vector<Output> outputs;
  if (asked.has("json")) {
    outputs.push_back({asked.text("json"), report::to_json(validation).text(2) + "\n", ""});
  }
  if (asked.has("report"))
    outputs.push_back(
        {asked.text("report"), report::validated_page(validation), " (open it in a browser)"});
  check_outputs(outputs, files);
  fmt::print(for_people(outputs), "{}",
             asked.has("summary") ? report::validation_summary(validation)
                                  : report::validation_table(validation));
  write_below(outputs);
  const std::vector<std::string> broken = study::broken(validation, limits);
  return conclude(study::refusals(validation.refused), broken);
}

}  // namespace

Command validate() {
  return {"validate", "compare predictions with measurements over many scenarios",
          &validate_options, &run_validate};
}

}  // namespace stratagem::commands

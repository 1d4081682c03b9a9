// `stratagem import`: a scenario from files of other programs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "commands/all.hpp"
#include "commands/arguments.hpp"
#include "commands/chosen_run.hpp"
#include "commands/outputs.hpp"
#include "imports/scenario.hpp"
#include "report/wrapped.hpp"
#include "study/results.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::commands {
namespace {

Options import_options() {
  std::string formats;
  std::vector<std::string> names;
  for (const imports::Format& format : imports::formats()) {
    formats += fmt::format("\n  {:<13} {}", format.name, format.summary);
    names.push_back(format.name);
  }
  Options options("stratagem import",
                  "Write a scenario from files of other programs; of several, such as a DeepSpeed\n"
                  "configuration and a model's config.json, later ones count more. Formats:" +
                      formats);
  options.texts("files", "files to read");
  options.text("from", "the format of all files (default: as each looks)", "");
  options.among(names);
  options.texts("set", "set a key of the run, as in gpus=64 or cluster.preset=dgx-a100");
  options.text("o,output", "the scenario to write");
  options.positional({"files"}, "FILE...");
  return options;
}

std::string notes_text(const std::string& title, const std::vector<imports::Note>& notes) {
  if (notes.empty()) return "";
  std::string text = title + "\n";
  for (const imports::Note& note : notes)
    text += report::wrapped(fmt::format("  {}: {}", note.what, note.why), 4);
  return text + "\n";
}

/// Lists of files are long, and say nothing here.
std::string shortened(const std::string& setting) {
  constexpr std::size_t most = 60;
  return setting.size() <= most ? setting : setting.substr(0, most - 3) + "...";
}

std::string text_of(const imports::Settings& settings) {
  std::string text = notes_text("Assumed:", settings.assumed) +
                     notes_text("Not in the scenario, though it may act:", settings.left_out);
  if (settings.no_matter.empty()) return text;
  std::vector<std::string> others;
  std::ranges::transform(settings.no_matter, std::back_inserter(others), shortened);
  return text + report::wrapped(fmt::format("Taken to act on neither time nor memory: {}",
                                            fmt::join(others, "; ")),
                                2);
}

/// Is the scenario one that `simulate` answers? Where it was written, its names are found.
std::vector<std::string> refusals_of(const std::string& file) {
  const study::Scenario scenario = study::read_scenario(file);
  std::vector<study::Outcome> outcomes;
  for (const study::Run& run : scenario.runs)
    outcomes.push_back(study::simulate_or_refuse(run, {.memory_first = true}).outcome);
  return study::refusals(study::compare(scenario, std::move(outcomes)));
}

int run_import(const std::vector<std::string>& line) {
  const Arguments asked(import_options(), line);
  if (asked.helped()) return done;
  if (!asked.has("files")) throw UsageError("missing files");
  const std::vector<std::string> files = asked.texts("files");
  std::vector<imports::Settings> settings;
  for (const std::string& file : files)
    settings.push_back(imports::read_settings(file, asked.text("from")));
  const std::string name = std::filesystem::path(files.back()).stem().string();
  const imports::Imported imported =
      imports::scenario_of(imports::merged(settings), settings_of(asked), name);
  const std::string output = asked.required("output");
  const std::vector<Output> outputs = {{output, imported.scenario.text(2) + "\n"}};
  check_outputs(outputs, files);
  fmt::print(for_people(outputs), "{}", text_of(imported.settings));
  write_below(outputs);
  return output == "-" ? done : conclude(refusals_of(output), {});
}

}  // namespace

Command import_scenario() {
  return {"import", "write a scenario from a launch script or another program's configuration",
          &import_options, &run_import};
}

}  // namespace stratagem::commands

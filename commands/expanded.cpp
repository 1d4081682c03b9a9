// A run at a time, since the texts of all can be long.
#include "commands/expanded.hpp"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "base/write_file.hpp"
#include "commands/all.hpp"
#include "commands/chosen_run.hpp"
#include "commands/outputs.hpp"
#include "program/program_text.hpp"
#include "study/plan_of.hpp"
#include "study/results.hpp"
#include "study/simulate.hpp"

namespace stratagem::commands {
namespace {

void check_options(const Arguments& asked) {
  if (!asked.has("program"))
    throw UsageError("--expanded says how --program FOLDER writes; there is no --program");
  for (const char* option : {"json", "report", "trace", "accuracy", "memory", "unfolded", "exact",
                             "jobs", "no-remedies"}) {
    if (asked.has(option))
      throw UsageError(fmt::format("--{} needs a simulation, and --expanded makes none", option));
  }
}

/// What can be in the name of a file; never one of `taken`.
std::string file_name(const std::string& run, std::set<std::string>& taken) {
  std::string name = run;
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    if (!plain) c = '_';
  }
  std::string unique = name;
  for (int number = 2; !taken.insert(unique).second; ++number)
    unique = fmt::format("{}_{}", name, number);
  return unique + ".txt";
}

/// The text of a run's program. Throws InputError for a run that is refused.
std::string program_text(const study::Run& run) {
  try {
    const strategies::Plan plan = study::plan_of(run);
    return program::to_text(study::program_of(run, plan), plan.graph());
  } catch (const InputError& error) {
    throw study::located(run, error);
  }
}

}  // namespace

int write_programs(const Arguments& asked) {
  check_options(asked);
  const study::Scenario scenario = changed_scenario(asked);
  const study::Run* const only = asked.text("run").empty() ? nullptr : &chosen_run(scenario, asked);
  const std::filesystem::path folder = asked.text("program");
  std::error_code ignored;  // a file in a folder that is not there cannot be written
  std::filesystem::create_directories(folder, ignored);
  std::set<std::string> names;
  std::vector<study::Result> refused;
  for (const study::Run& run : scenario.runs) {
    const std::string file = (folder / file_name(run.name, names)).string();
    if (only != nullptr && only != &run) continue;
    try {
      write_file(file, program_text(run));
    } catch (const InputError& error) {
      if (error.file == file) throw;
      write_file(file, fmt::format("refused: {}\n", error.what()));
      refused.push_back({.run = &run,
                         .outcome = {.status = study::Outcome::Status::refused,
                                     .reason = error.what(),
                                     .gpus = run.gpus},
                         .figures = {},
                         .remedies = {}});
    }
    fmt::print("wrote {}\n", file);
  }
  return conclude(study::refusals(refused), {});
}

}  // namespace stratagem::commands

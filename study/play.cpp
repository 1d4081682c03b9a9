// Simulates on several threads what `validate` compares: runs that were measured, and their
// baselines.
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "study/validation.hpp"

namespace stratagem::study {
namespace {

bool measured_for(const Run& run, const Selection& selection) {
  if (group_of(run).find(selection.group) == std::string::npos) return false;
  return std::ranges::any_of(run.compared.measured, [&](const Measured& each) {
    return selection.figure.empty() || each.name == selection.figure;
  });
}

/// A run to simulate, and where its outcome goes.
struct Task {
  const Run* run;
  Outcome* outcome;
};

/// Those runs of a scenario that are wanted, and what they are relative to; the outcomes of the
/// others say that nobody asked.
void add_tasks(std::vector<Task>& tasks, const Scenario& scenario, const Selection& selection,
               std::vector<Outcome>& outcomes) {
  std::set<std::string> baselines;
  for (const Run& run : scenario.runs) {
    if (measured_for(run, selection)) baselines.insert(run.compared.baseline);
  }
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    const Run& run = scenario.runs[i];
    outcomes[i] = {.status = Outcome::Status::not_asked,
                   .reason = "nothing of it is asked for",
                   .gpus = run.gpus};
    if (measured_for(run, selection) || baselines.contains(run.name))
      tasks.push_back({&run, &outcomes[i]});
  }
}

}  // namespace

std::vector<Played> play(std::vector<Scenario> scenarios, const Selection& selection, int threads,
                         const Tell& tell) {
  std::vector<std::vector<Outcome>> outcomes;
  for (const Scenario& scenario : scenarios) outcomes.emplace_back(scenario.runs.size());
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < scenarios.size(); ++i)
    add_tasks(tasks, scenarios[i], selection, outcomes[i]);
  for_each_index(
      tasks.size(), threads,
      [&](std::size_t i) { *tasks[i].outcome = simulate_or_refuse(*tasks[i].run, {}).outcome; },
      [&](std::size_t done) {
        if (tell) tell("runs", done, tasks.size());
      });
  std::vector<Played> played(scenarios.size());
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    played[i].scenario = std::move(scenarios[i]);
    played[i].results = compare(played[i].scenario, std::move(outcomes[i]));
  }
  return played;
}

std::vector<std::string> scenario_files(const std::vector<std::string>& named) {
  std::vector<std::string> files;
  for (const std::string& name : named) {
    if (!std::filesystem::is_directory(name)) {
      files.push_back(name);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(name)) {
      if (entry.path().extension() == ".json" && entry.path().filename() != limits_file)
        inside.push_back(entry.path().string());
    }
    if (inside.empty()) throw InputError(name, "", "a folder of scenarios", "none");
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

std::vector<Played> play_files(const std::vector<std::string>& files, const Selection& selection,
                               int threads, const Tell& tell) {
  std::vector<Scenario> scenarios(files.size());
  for_each_index(files.size(), threads,
                 [&](std::size_t i) { scenarios[i] = read_scenario(files[i]); });
  return play(std::move(scenarios), selection, threads, tell);
}

}  // namespace stratagem::study

// Finds a run by its name.
#include "commands/chosen_run.hpp"

#include <optional>
#include <set>

#include "base/json_reader.hpp"

namespace stratagem::commands {

const study::Run& chosen_run(const study::Scenario& scenario, const Arguments& asked) {
  const std::string name = asked.text("run");
  if (name.empty()) return scenario.runs.front();
  for (const study::Run& run : scenario.runs) {
    if (run.name == name) return run;
  }
  std::vector<std::string> names;
  for (const study::Run& run : scenario.runs) names.push_back(run.name);
  const std::optional<std::string> near = nearest(name, names);
  throw UsageError("no run named \"" + name + "\" in " + scenario.file +
                   (near ? "; did you mean \"" + *near + "\"?" : ""));
}

std::vector<std::string> files_of(const study::Scenario& scenario) {
  std::set<std::string> files{scenario.file};
  for (const study::Run& run : scenario.runs)
    files.insert(run.origin.files.begin(), run.origin.files.end());
  return {files.begin(), files.end()};
}

}  // namespace stratagem::commands

// Finds a run by its name.
#include "commands/chosen_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/nearest.hpp"
#include "study/scenario.hpp"

namespace stratagem::commands {

namespace {

/// Commas part the words of an option; one without "=" belongs to the word before it.
std::vector<std::string> rejoined(const std::vector<std::string>& words) {
  std::vector<std::string> texts;
  for (const std::string& word : words) {
    if (texts.empty() || word.find('=') != std::string::npos)
      texts.push_back(word);
    else
      texts.back() += "," + word;
  }
  return texts;
}

}  // namespace

void add_settings(Options& options) {
  options.texts("set", "set a key in every run, as in tensor=4 or training.precision=bf16");
}

void add_price(Options& options) {
  options.real(
      "price",
      "what a GPU costs for an hour, as cluster.price_per_gpu_hour of every run: gives the "
      "cost of a billion tokens");
}

std::vector<study::KeyValues> settings_of(const Arguments& asked) {
  std::vector<study::KeyValues> changes;
  if (asked.has("price")) {
    const double price = asked.real("price");
    if (!(price > 0) || price > 1e6)
      throw UsageError(
          fmt::format("--price: expected more than 0, and at most 1e6, found {}", price));
    changes.push_back(
        {.path = study::price_path, .values = {price}, .option = fmt::format("--price {}", price)});
  }
  for (const bool several : {false, true}) {
    const std::string option = several ? "grid" : "set";
    if (!asked.has(option)) continue;
    for (const std::string& text : rejoined(asked.texts(option)))
      changes.push_back(study::read_change(text, several, "--" + option));
  }
  return changes;
}

study::Scenario changed_scenario(const Arguments& asked) {
  return study::read_scenario(asked.required("scenario"), settings_of(asked));
}

const study::Run& chosen_run(const study::Scenario& scenario, const Arguments& asked) {
  const std::string name = asked.text("run");
  if (name.empty()) return scenario.runs.front();
  for (const study::Run& run : scenario.runs) {
    if (run.name == name) return run;
  }
  std::vector<std::string> names;
  for (const study::Run& run : scenario.runs) names.push_back(run.name);
  const std::string near = did_you_mean(name, names);
  throw UsageError(
      "no run named \"" + name + "\" in " + scenario.file +
      (near.empty() ? fmt::format("; there are \"{}\"", fmt::join(names, "\", \"")) : near));
}

std::vector<std::string> files_of(const study::Scenario& scenario) {
  std::set<std::string> files{scenario.file};
  for (const study::Run& run : scenario.runs)
    files.insert(run.origin.files.begin(), run.origin.files.end());
  return {files.begin(), files.end()};
}

}  // namespace stratagem::commands

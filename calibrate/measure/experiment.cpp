// Names of experiments.
#include "calibrate/measure/experiment.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::calibrate {

std::string Experiment::name() const {
  std::string text = kind;
  for (const std::string& word : {operation, transposes})
    if (!word.empty()) text += " " + word;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += (i == 0 ? " " : " x ") + std::to_string(sizes[i]);
  return text;
}

std::string Experiment::label() const { return operation.empty() ? kind : kind + " " + operation; }

void check_only(const std::string& only, const std::vector<Experiment>& all) {
  const auto named = [&](const Experiment& e) { return e.name().starts_with(only); };
  if (std::ranges::any_of(all, named)) return;
  std::vector<std::string> labels;
  for (const Experiment& e : all)
    if (std::ranges::find(labels, e.label()) == labels.end()) labels.push_back(e.label());
  std::string there_is;
  for (const std::string& label : labels) there_is += (there_is.empty() ? "" : ", ") + label;
  throw InputError("", "--only",
                   "how the names of some experiments begin, which are of " + there_is,
                   "\"" + only + "\"");
}

}  // namespace stratagem::calibrate

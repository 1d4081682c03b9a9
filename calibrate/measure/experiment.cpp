// Names of experiments.
#include "calibrate/measure/experiment.hpp"

namespace stratagem::calibrate {

std::string Experiment::name() const {
  std::string text = kind;
  for (const std::string& word : {operation, transposes})
    if (!word.empty()) text += " " + word;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    text += (i == 0 ? " " : " x ") + std::to_string(sizes[i]);
  return text;
}

}  // namespace stratagem::calibrate

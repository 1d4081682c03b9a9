// Prints runs for people: one line each, measured values beside the predicted ones.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/quantity_text.hpp"
#include "report/report.hpp"

namespace stratagem::report {
namespace {

using search::Figure;
using search::Result;

std::string value_text(const std::string& name, double value) {
  if (name == "iteration_time") return fmt::format("{:.3f} s", value);
  if (name == "tflops_per_gpu") return fmt::format("{:.1f} TFLOP/s", value);
  if (name == "scaling_efficiency") return fmt::format("{:.1f} %", 100 * value);
  return fmt::format("{:.2f}x", value);
}

/// Efficiencies differ in points, everything else in percent.
std::string error_text(const Figure& figure) {
  if (!figure.predicted) return "";
  const char* unit = figure.name == "scaling_efficiency" ? "pt" : "%";
  return fmt::format("{:+.1f} {}", 100 * figure.error(), unit);
}

std::string measured_text(const Figure& figure) {
  return value_text(figure.name, *figure.measured) + (figure.gates ? "" : " (from memory)");
}

std::string prediction(const Result& result) {
  if (!result.outcome.metrics) return "";
  const sim::Metrics& m = *result.outcome.metrics;
  const double seconds_of_all = m.iteration_time.value * result.outcome.gpus;
  const auto efficiency = std::ranges::find(result.figures, "scaling_efficiency", &Figure::name);
  const bool relative = efficiency != result.figures.end() && efficiency->predicted;
  return fmt::format("{:>9.3f} s {:>8.1f} {:>8.1f} {:>9} {:>10}", m.iteration_time.value,
                     m.model_flops.value / seconds_of_all / 1e12, m.hardware_flops.value / seconds_of_all / 1e12,
                     relative ? value_text(efficiency->name, *efficiency->predicted) : "",
                     to_text(m.peak.total + result.run->profile.context.value));
}

/// The run and its first measured figure; a line more for each further one, and for what went wrong.
void append(std::string& text, const Result& result, std::size_t name_width) {
  const auto out = std::back_inserter(text);
  std::string lead = fmt::format("{:<{}} {:>5} {:<48}", result.run->name, name_width, result.outcome.gpus, prediction(result));
  bool printed = false;
  for (const Figure& figure : result.figures) {
    if (!figure.measured) continue;
    fmt::format_to(out, "{}  {:>19} {:>9}", lead, measured_text(figure), error_text(figure));
    const bool in_columns = figure.name != "speedup";
    if (!in_columns && figure.predicted) fmt::format_to(out, "  (predicted {})", value_text(figure.name, *figure.predicted));
    text += "\n";
    lead.assign(lead.size(), ' ');
    printed = true;
  }
  if (!printed) text += lead.substr(0, lead.find_last_not_of(' ') + 1) + "\n";
  if (result.outcome.status != search::Outcome::Status::ok) {
    fmt::format_to(out, "{:<{}}       does not run: {}\n", "", name_width, result.outcome.reason);
  }
}

}  // namespace

std::string table(const search::Scenario& scenario, const std::vector<Result>& results) {
  std::size_t name_width = 4;
  for (const Result& result : results) name_width = std::max(name_width, result.run->name.size());
  std::string text = scenario.question + "\n\n";
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{:<{}} {:>5} {:>11} {:>8} {:>8} {:>9} {:>10}  {:>19} {:>9}\n", "run", name_width, "GPUs", "iteration",
                 "TFLOP/s", "TFLOP/s", "scaling", "peak mem", "measured", "error");
  fmt::format_to(out, "{:<{}} {:>5} {:>11} {:>8} {:>8} {:>9} {:>10}\n", "", name_width, "", "", "model", "hardware",
                 "efficiency", "per GPU");
  std::string group;
  for (const Result& result : results) {
    if (result.run->compares != group) fmt::format_to(out, "\n{}\n", group = result.run->compares);
    append(text, result, name_width);
  }
  return text;
}

}  // namespace stratagem::report

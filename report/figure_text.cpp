// Figures and their errors in words.
#include "report/figure_text.hpp"

#include <fmt/format.h>

#include <set>

#include "base/quantity_text.hpp"
#include "report/wrapped.hpp"
#include "study/figures.hpp"

namespace stratagem::report {

std::string value_text(const std::string& figure, double value) {
  if (figure == "iteration_time") return fmt::format("{:.3f} s", value);
  if (figure.ends_with("tflops_per_gpu")) return fmt::format("{:.1f} TFLOP/s", value);
  if (figure == "scaling_efficiency") return fmt::format("{:.1f} %", 100 * value);
  if (figure == "fits") return value == 1 ? "yes" : "no";
  if (study::concerns_memory(figure)) return to_text(Bytes{value});
  return fmt::format("{:.2f} x", value);
}

std::string error_text(const study::Figure& figure) {
  if (!figure.predicted || !figure.measured) return "";
  if (figure.name == "fits") return figure.error() == 0 ? "right" : "wrong";
  const char* unit = figure.name == "scaling_efficiency" ? "pt" : "%";
  const std::string text = fmt::format("{:+.1f}", 100 * figure.error());
  const bool none = text == "+0.0" || text == "-0.0";
  return (none ? "0.0" : text) + " " + unit;
}

std::string refusal_text(const study::Result& result) {
  const std::string file = result.run->origin.file + ": ";
  const std::string& reason = result.outcome.reason;
  return wrapped("  refused: " + reason.substr(reason.starts_with(file) ? file.size() : 0), 4);
}

std::string baseline_in_words(const std::vector<study::Result>& results) {
  std::set<std::string> names;
  for (const study::Result& result : results) {
    if (!result.run->compared.baseline.empty()) names.insert(result.run->compared.baseline);
  }
  if (names.empty()) return "";
  return names.size() == 1 ? "\"" + *names.begin() + "\"" : "the baseline";
}

}  // namespace stratagem::report

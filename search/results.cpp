// Derives figures from metrics, and holds them to expectations.
#include "search/results.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::search {
namespace {

/// The three figures of memory, in bytes, and whether they fit.
double predict_memory(const std::string& name, const Outcome& outcome) {
  if (name == "peak_allocated") return outcome.memory.allocated.value;
  if (name == "peak_reserved") return outcome.memory.reserved.value;
  if (name == "peak_used") return outcome.memory.used.value;
  return outcome.status == Outcome::Status::ok ? 1 : 0;
}

double samples_per_second(const Result& result) {
  return result.run->global_batch / result.outcome.metrics->iteration_time.value;
}

std::optional<double> predict(const std::string& name, const Result& result,
                              const Result* baseline) {
  if (!result.outcome.metrics) return std::nullopt;
  const sim::Metrics& metrics = *result.outcome.metrics;
  if (name == "iteration_time") return metrics.iteration_time.value;
  if (name == "tflops_per_gpu") return result.outcome.hardware_rate() / 1_TFLOPps;
  if (concerns_memory(name)) return predict_memory(name, result.outcome);
  const bool comparable = baseline != nullptr && baseline->outcome.status == Outcome::Status::ok;
  if (!comparable) return std::nullopt;
  if (name == "scaling_efficiency")
    return result.outcome.model_rate() / baseline->outcome.model_rate();
  return samples_per_second(result) / samples_per_second(*baseline);
}

std::string bounds(const Expectation& expectation) {
  if (expectation.at_least == -1e300) return fmt::format("at most {:.6g}", expectation.at_most);
  if (expectation.at_most == 1e300) return fmt::format("at least {:.6g}", expectation.at_least);
  return fmt::format("{:.6g} to {:.6g}", expectation.at_least, expectation.at_most);
}

std::optional<std::string> failure(const Result& result, const Expectation& expectation) {
  const Run& run = *result.run;
  const std::string where = run.file + ": " + run.path + "/expect/" + expectation.name;
  const std::string why = " (" + run.name + ": " + expectation.because + ")";
  if (expectation.name == "fits") {
    const bool fits = result.outcome.status == Outcome::Status::ok;
    if (fits == (expectation.at_least == 1)) return std::nullopt;
    return where + ": expected " +
           (fits ? "not to fit, but it does" : "to fit, but it " + result.outcome.reason) + why;
  }
  const auto found = std::ranges::find(result.figures, expectation.name, &Figure::name);
  if (found == result.figures.end() || !found->predicted) {
    return where + ": expected " + bounds(expectation) + ", but nothing is predicted" + why;
  }
  const double value = *found->predicted;
  if (value >= expectation.at_least && value <= expectation.at_most) return std::nullopt;
  return fmt::format("{}: expected {}, predicted {:.6g}{}", where, bounds(expectation), value, why);
}

}  // namespace

bool concerns_memory(const std::string& figure) {
  return figure.starts_with("peak_") || figure == "fits";
}

double Figure::error() const {
  expects(predicted && measured, "an error has a prediction and a measurement");
  const double difference = *predicted - *measured;
  return name == "scaling_efficiency" || name == "fits" ? difference : difference / *measured;
}

std::vector<Result> compare(const Scenario& scenario, std::vector<Outcome> outcomes) {
  std::vector<Result> results;
  for (std::size_t i = 0; i < scenario.runs.size(); ++i) {
    results.push_back({&scenario.runs[i], std::move(outcomes[i]), {}});
  }
  for (Result& result : results) {
    const auto baseline = std::ranges::find(results, result.run->baseline,
                                            [](const Result& r) { return r.run->name; });
    const Result* relative_to = baseline == results.end() ? nullptr : &*baseline;
    for (const std::string& name : figure_names) {
      Figure figure{.name = name, .predicted = predict(name, result, relative_to)};
      const auto measured = std::ranges::find(result.run->measured, name, &Measured::name);
      if (measured != result.run->measured.end()) {
        figure.measured = measured->value;
        figure.gates = measured->gates;
        figure.source = measured->source;
        figure.fitted = measured->fitted;
      }
      result.figures.push_back(figure);
    }
  }
  return results;
}

std::vector<std::string> failures(const std::vector<Result>& results) {
  std::vector<std::string> lines;
  for (const Result& result : results) {
    for (const Expectation& expectation : result.run->expect) {
      if (const auto line = failure(result, expectation)) lines.push_back(*line);
    }
  }
  return lines;
}

}  // namespace stratagem::search

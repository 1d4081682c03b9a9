// Derives figures from metrics, and compares them with expectations.
#include "study/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/input_error.hpp"
#include "study/figures.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {
namespace {

/// Of one device, which must be the first of those that are alike: which the others are, nobody
/// keeps.
sim::MemoryFigures memory_of(const Outcome& outcome, const Run& run, const std::string& name,
                             int device) {
  const auto found = std::ranges::find(outcome.devices, device, &sim::DeviceMemory::device);
  if (found == outcome.devices.end()) {
    std::string firsts;
    for (const sim::DeviceMemory& one : outcome.devices)
      firsts += (firsts.empty() ? "" : ", ") + std::to_string(one.device);
    throw InputError(run.origin.file, run.origin.path + "/measured/" + name + "/device",
                     "the first of devices that are alike: " + firsts, std::to_string(device));
  }
  return {found->resident, found->allocated, found->reserved, found->used()};
}

/// The figures of memory, in bytes, and whether they fit.
double predict_memory(const std::string& name, const Result& result, std::optional<int> device) {
  const Outcome& outcome = result.outcome;
  const sim::MemoryFigures memory =
      device ? memory_of(outcome, *result.run, name, *device) : outcome.memory;
  if (name == "resident") return memory.resident.value;
  if (name == "peak_allocated") return memory.allocated.value;
  if (name == "peak_reserved") return memory.reserved.value;
  if (name == "peak_used") return memory.used.value;
  return outcome.status == Outcome::Status::ok ? 1 : 0;
}

double samples_per_second(const Result& result) {
  return result.run->batch.global / result.outcome.metrics->iteration_time.value;
}

std::optional<double> predict(const std::string& name, const Result& result, const Result* baseline,
                              std::optional<int> device) {
  if (!result.outcome.metrics) return std::nullopt;
  const sim::Metrics& metrics = *result.outcome.metrics;
  if (name == "iteration_time") return metrics.iteration_time.value;
  if (name == "tflops_per_gpu") return result.outcome.hardware_rate() / 1_TFLOPps;
  if (name == "model_tflops_per_gpu") return result.outcome.model_rate() / 1_TFLOPps;
  if (concerns_memory(name)) return predict_memory(name, result, device);
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

bool is_relative(const std::string& figure) {
  return figure == "scaling_efficiency" || figure == "speedup";
}

std::optional<std::string> failure(const Result& result, const Expectation& expectation) {
  const Run& run = *result.run;
  const std::string where =
      run.origin.file + ": " + run.origin.path + "/expect/" + expectation.name;
  const std::string why = " (" + run.name + ": " + expectation.because + ")";
  if (expectation.name == "fits") {
    const bool fits = result.outcome.status == Outcome::Status::ok;
    if (fits == (expectation.at_least == 1)) return std::nullopt;
    return where + ": expected " +
           (fits ? "not to fit, but it does" : "to fit, but it " + result.outcome.reason) + why;
  }
  const auto found = std::ranges::find(result.figures, expectation.name, &Figure::name);
  if (found == result.figures.end() || !found->predicted) {
    const bool alone = run.compared.baseline.empty() && is_relative(expectation.name);
    return where + ": expected " + bounds(expectation) + ", but nothing is predicted" +
           (alone ? " without a baseline" : "") + why;
  }
  const double value = *found->predicted;
  if (value >= expectation.at_least && value <= expectation.at_most) return std::nullopt;
  return fmt::format("{}: expected {}, predicted {:.6g}{}", where, bounds(expectation), value, why);
}

}  // namespace

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
    const auto baseline = std::ranges::find(results, result.run->compared.baseline,
                                            [](const Result& r) { return r.run->name; });
    const Result* relative_to = baseline == results.end() ? nullptr : &*baseline;
    for (const std::string& name : figure_names) {
      const auto measured = std::ranges::find(result.run->compared.measured, name, &Measured::name);
      const bool known = measured != result.run->compared.measured.end();
      Figure figure{
          .name = name,
          .predicted = predict(name, result, relative_to, known ? measured->device : std::nullopt)};
      if (known) {
        figure.measured = measured->value;
        figure.gates = measured->gates;
        figure.provenance = measured->provenance;
        figure.source = measured->source;
        figure.device = measured->device;
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
    if (result.outcome.status == Outcome::Status::refused) continue;
    for (const Expectation& expectation : result.run->compared.expect) {
      if (const auto line = failure(result, expectation)) lines.push_back(*line);
    }
  }
  return lines;
}

std::vector<std::string> refusals(const std::vector<const Result*>& results) {
  std::vector<std::pair<std::string, std::vector<std::string>>> runs_by_reason;
  for (const Result* result : results) {
    if (result->outcome.status != Outcome::Status::refused) continue;
    const std::string& reason = result->outcome.reason;
    auto known = std::ranges::find(runs_by_reason, reason, [](const auto& e) { return e.first; });
    if (known == runs_by_reason.end()) known = runs_by_reason.insert(known, {reason, {}});
    known->second.push_back('"' + result->run->name + '"');
  }
  std::vector<std::string> lines;
  for (const auto& [reason, runs] : runs_by_reason) {
    constexpr std::size_t most = 5;
    const std::span named(runs.data(), std::min(most, runs.size()));
    lines.push_back(fmt::format(
        "{} ({} {}{})", reason, runs.size() == 1 ? "run" : "runs", fmt::join(named, ", "),
        runs.size() > most ? fmt::format(" and {} more", runs.size() - most) : ""));
  }
  return lines;
}

std::vector<std::string> refusals(const std::vector<Result>& results) {
  std::vector<const Result*> all;
  for (const Result& result : results) all.push_back(&result);
  return refusals(all);
}

std::optional<double> cost_of_billion_tokens(const Run& run, int gpus, Seconds iteration_time) {
  const std::optional<double> price = run.cluster.design().price_per_gpu_hour;
  if (!price) return std::nullopt;
  const double tokens = run.batch.global * static_cast<double>(run.batch.sequence);
  return *price * gpus * (iteration_time.value / 3600) * (1e9 / tokens);
}

}  // namespace stratagem::study

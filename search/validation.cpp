// Collects errors and verdicts of many runs, and compares them with limits.
#include "search/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/input_error.hpp"
#include "base/median.hpp"
#include "topology/drives.hpp"

namespace stratagem::search {
namespace {

void add_new(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

ErrorStatistics summed_up(const std::string& group, const std::string& figure,
                          const std::vector<const Compared*>& compared) {
  ErrorStatistics result{
      .group = group, .figure = figure, .count = static_cast<int>(compared.size())};
  std::vector<double> sizes;
  for (const Compared* each : compared) {
    const double error = each->figure->error();
    sizes.push_back(std::abs(error));
    result.mean += error / result.count;
    if (result.worst_run.empty() || std::abs(error) > std::abs(result.worst)) {
      result.worst = error;
      result.worst_run = each->result->run->name;
    }
  }
  result.median = median(sizes);
  return result;
}

std::vector<ErrorStatistics> statistics(const Validation& validation) {
  std::vector<ErrorStatistics> result;
  for (const std::string& group : validation.groups()) {
    for (const std::string& figure : figure_names) {  // "fits" has verdicts, no errors
      std::vector<const Compared*> of_both;
      for (const Compared& compared : validation.compared) {
        if (compared.judges && compared.group == group && compared.figure->name == figure)
          of_both.push_back(&compared);
      }
      if (!of_both.empty()) result.push_back(summed_up(group, figure, of_both));
    }
  }
  return result;
}

/// The verdict on a run that is known to fit or not to fit: by its GPUs or, if they are fuller, by
/// the processors of its servers or their drives.
std::optional<Verdict> verdict(const Result& result) {
  const auto found = std::ranges::find(result.figures, "fits", &Figure::name);
  const bool known = found != result.figures.end() && found->measured && found->gates;
  if (!known || !result.outcome.metrics) return std::nullopt;
  const Run& run = *result.run;
  Verdict verdict{.group = group_of(run),
                  .result = &result,
                  .measured = *found->measured != 0,
                  .needed = result.outcome.memory.used,
                  .capacity = run.profile.memory.value};
  const Bytes on_host = sim::highest(result.outcome.hosts);
  const Bytes host = run.cluster.design().host_memory.value_or(Bytes{});
  if (host > Bytes{} && on_host / host > verdict.needed / verdict.capacity) {
    verdict.needed = on_host;
    verdict.capacity = host;
  }
  const Bytes on_drives = sim::highest(result.outcome.drives);
  const Bytes drives = topology::capacity_of_drives(run.cluster.design());
  if (drives > Bytes{} && on_drives / drives > verdict.needed / verdict.capacity) {
    verdict.needed = on_drives;
    verdict.capacity = drives;
  }
  return verdict;
}

bool wanted(const Selection& selection, const std::string& figure) {
  return selection.figure.empty() || selection.figure == figure;
}

bool concerns(const Limits::Median& limit, const ErrorStatistics& statistics) {
  return (limit.group.empty() || limit.group == statistics.group) &&
         (limit.figure.empty() || limit.figure == statistics.figure);
}

}  // namespace

std::string group_of(const Run& run) {
  return run.compares.empty() ? std::filesystem::path(run.file).stem().string() : run.compares;
}

Verdict::Kind Verdict::kind() const {
  constexpr double margin = 0.1;
  if (std::abs(capacity / needed - 1) <= margin) return Kind::undecided;
  return (needed <= capacity) == measured ? Kind::right : Kind::wrong;
}

std::vector<std::string> Validation::groups() const {
  std::vector<std::string> names;
  for (const Compared& each : compared) add_new(names, each.group);
  for (const Verdict& each : verdicts) add_new(names, each.group);
  return names;
}

Validation validate(const std::vector<Played>& played, const Selection& selection) {
  Validation validation;
  for (const Played& one : played) {
    for (const Result& result : one.results) {
      if (result.outcome.status == Outcome::Status::refused) validation.refused.push_back(&result);
      const std::string group = group_of(*result.run);
      if (group.find(selection.group) == std::string::npos) continue;
      for (const Figure& figure : result.figures) {
        if (!figure.measured || !figure.predicted || !wanted(selection, figure.name)) continue;
        if (figure.name == "fits") continue;
        validation.compared.push_back({group, &result, &figure, figure.gates && !figure.fitted});
      }
      const std::optional<Verdict> fits = verdict(result);
      if (fits && wanted(selection, "fits")) validation.verdicts.push_back(*fits);
    }
  }
  validation.statistics = statistics(validation);
  return validation;
}

Limits read_limits(const std::string& file) {
  const JsonReader reader = JsonReader::from_file(file);
  Limits limits;
  if (const auto medians = reader.find("median_error")) {
    for (const std::string& group : medians->keys()) {
      const JsonReader figures = medians->at(group);
      for (const std::string& figure : figures.keys()) {
        const JsonReader limit = figures.at(figure);
        check_word(limit, figure, figure_names, "a figure");
        limits.medians.push_back({group, figure, limit.number()});
      }
    }
  }
  if (const auto wrong = reader.find("wrong_verdicts"))
    limits.wrong_verdicts = static_cast<int>(wrong->between(0, 1'000'000));
  reader.finish();
  return limits;
}

Limits selected(const Limits& limits, const Selection& selection) {
  Limits result;
  for (const Limits::Median& limit : limits.medians) {
    const bool counted =
        limit.group.empty() || limit.group.find(selection.group) != std::string::npos;
    if (counted && (limit.figure.empty() || wanted(selection, limit.figure)))
      result.medians.push_back(limit);
  }
  if (selection.group.empty() && wanted(selection, "fits"))
    result.wrong_verdicts = limits.wrong_verdicts;
  return result;
}

std::vector<std::string> broken(const Validation& validation, const Limits& limits) {
  std::vector<std::string> lines;
  for (const ErrorStatistics& each : validation.statistics) {
    const auto limit = std::ranges::find_if(
        limits.medians, [&](const Limits::Median& l) { return concerns(l, each); });
    if (limits.medians.empty()) continue;
    if (limit == limits.medians.end()) {
      lines.push_back(fmt::format("{}: {}: expected a limit of the median error, found none",
                                  each.group, each.figure));
    } else if (each.median > limit->at_most) {
      lines.push_back(
          fmt::format("{}: {}: expected a median error of at most {:.1f} %, found {:.1f} %",
                      each.group, each.figure, 100 * limit->at_most, 100 * each.median));
    }
  }
  for (const Limits::Median& limit : limits.medians) {
    const bool counted = std::ranges::any_of(
        validation.statistics, [&](const ErrorStatistics& each) { return concerns(limit, each); });
    if (counted) continue;
    lines.push_back(fmt::format("{}: {}: expected figures that this limit holds for, found none",
                                limit.group.empty() ? "any group" : limit.group,
                                limit.figure.empty() ? "any figure" : limit.figure));
  }
  const auto wrong = std::ranges::count_if(
      validation.verdicts, [](const Verdict& each) { return each.kind() == Verdict::Kind::wrong; });
  if (limits.wrong_verdicts && wrong > *limits.wrong_verdicts) {
    lines.push_back(fmt::format("fits: expected at most {} wrong verdicts, found {}",
                                *limits.wrong_verdicts, wrong));
  }
  return lines;
}

}  // namespace stratagem::search

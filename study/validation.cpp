// Collects errors and verdicts of many runs, and compares them with limits.
#include "study/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/input_error.hpp"
#include "base/median.hpp"
#include "study/figures.hpp"
#include "study/simulate.hpp"
#include "topology/drives.hpp"

namespace stratagem::study {
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
    result.mean_absolute += std::abs(error) / result.count;
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
                  .capacity = run.profile.memory.size.value};
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

/// What a limit may be for: the median error of a figure in a group, or the number of wrong
/// verdicts on it.
struct Counted {
  std::string group;
  std::string figure;
  double value;
};

std::vector<Counted> medians(const Validation& validation) {
  std::vector<Counted> result;
  for (const ErrorStatistics& each : validation.statistics)
    result.push_back({each.group, each.figure, each.median});
  return result;
}

std::vector<Counted> wrong_verdicts(const Validation& validation) {
  std::vector<Counted> result;
  for (const Verdict& each : validation.verdicts) {
    auto place = std::ranges::find(result, each.group, &Counted::group);
    if (place == result.end()) place = result.insert(place, {each.group, "fits", 0});
    if (each.kind() == Verdict::Kind::wrong) ++place->value;
  }
  return result;
}

bool concerns(const Limits::AtMost& limit, const Counted& counted) {
  return (limit.group.empty() || limit.group == counted.group) &&
         (limit.figure.empty() || limit.figure == counted.figure);
}

/// The first that concerns it.
std::optional<double> limit_of(const std::vector<Limits::AtMost>& limits, const Counted& counted) {
  const auto found = std::ranges::find_if(
      limits, [&](const Limits::AtMost& limit) { return concerns(limit, counted); });
  return found == limits.end() ? std::nullopt : std::optional(found->value);
}

std::vector<Limits::AtMost> selected(const std::vector<Limits::AtMost>& limits,
                                     const Selection& selection) {
  std::vector<Limits::AtMost> result;
  for (const Limits::AtMost& limit : limits) {
    const bool counted =
        limit.group.empty() || limit.group.find(selection.group) != std::string::npos;
    if (counted && (limit.figure.empty() || wanted(selection, limit.figure)))
      result.push_back(limit);
  }
  return result;
}

/// A line for every limit that is for nothing.
void add_idle(std::vector<std::string>& lines, const std::vector<Limits::AtMost>& limits,
              const std::vector<Counted>& counted) {
  for (const Limits::AtMost& limit : limits) {
    if (std::ranges::any_of(counted, [&](const Counted& one) { return concerns(limit, one); }))
      continue;
    lines.push_back(fmt::format("{}: {}: expected figures that this limit holds for, found none",
                                limit.group.empty() ? "any group" : limit.group,
                                limit.figure.empty() ? "any figure" : limit.figure));
  }
}

}  // namespace

std::string group_of(const Run& run) {
  return run.compared.group.empty() ? std::filesystem::path(run.origin.file).stem().string()
                                    : run.compared.group;
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
  if (const auto wrong = reader.find("wrong_verdicts")) {
    limits.wrong_verdicts.emplace();
    for (const std::string& group : wrong->keys()) {
      const auto most = static_cast<double>(wrong->at(group).between(0, 1'000'000));
      limits.wrong_verdicts->push_back({group, "fits", most});
    }
  }
  reader.finish();
  return limits;
}

Limits selected(const Limits& limits, const Selection& selection) {
  Limits result{.medians = selected(limits.medians, selection), .wrong_verdicts = {}};
  if (limits.wrong_verdicts) result.wrong_verdicts = selected(*limits.wrong_verdicts, selection);
  return result;
}

std::vector<std::string> broken(const Validation& validation, const Limits& limits) {
  std::vector<std::string> lines;
  if (!limits.medians.empty()) {
    const std::vector<Counted> found = medians(validation);
    for (const Counted& each : found) {
      const std::optional<double> most = limit_of(limits.medians, each);
      if (!most)
        lines.push_back(fmt::format("{}: {}: expected a limit of the median error, found none",
                                    each.group, each.figure));
      else if (each.value > *most)
        lines.push_back(
            fmt::format("{}: {}: expected a median error of at most {:.1f} %, found {:.1f} %",
                        each.group, each.figure, 100 * *most, 100 * each.value));
    }
    add_idle(lines, limits.medians, found);
  }
  if (limits.wrong_verdicts) {
    const std::vector<Counted> found = wrong_verdicts(validation);
    for (const Counted& each : found) {
      const double most = limit_of(*limits.wrong_verdicts, each).value_or(0);
      if (each.value > most)
        lines.push_back(fmt::format("{}: fits: expected at most {} wrong verdicts, found {}",
                                    each.group, most, each.value));
    }
    add_idle(lines, *limits.wrong_verdicts, found);
  }
  return lines;
}

}  // namespace stratagem::study

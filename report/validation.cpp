// Validations as text and as JSON.
#include "report/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/quantity_text.hpp"
#include "report/figure_text.hpp"
#include "study/rankings.hpp"

namespace stratagem::report {
namespace {

using study::Compared;
using study::ErrorStatistics;
using study::Validation;
using study::Verdict;
using Kind = Verdict::Kind;

const char* to_text(Kind kind) {
  return kind == Kind::right ? "right" : kind == Kind::wrong ? "wrong" : "undecided";
}

const char* in_words(bool fits) { return fits ? "fits" : "does not fit"; }

std::string percent(const std::string& figure, double error, bool sign = true) {
  const char* unit = figure == "scaling_efficiency" ? "pt" : "%";
  return sign ? fmt::format("{:+.1f} {}", 100 * error, unit)
              : fmt::format("{:.1f} {}", 100 * error, unit);
}

std::string figure_lines(const Validation& validation, const std::string& group,
                         std::size_t width) {
  std::string text;
  const std::string* last = nullptr;  // a run's name stands at its first figure
  for (const Compared& each : validation.compared) {
    if (each.group != group) continue;
    const std::string& run = each.result->run->name;
    const study::Figure& figure = *each.figure;
    fmt::format_to(std::back_inserter(text), "{:<{}} {:<18} {:>14} {:>13} {:>9}{}\n",
                   last == &run ? "" : run, width, figure.name,
                   value_text(figure.name, *figure.measured),
                   value_text(figure.name, *figure.predicted), error_text(figure),
                   each.judges ? "" : "  not judged");
    last = &run;
  }
  return text;
}

std::string verdict_lines(const Validation& validation, const std::string& group,
                          std::size_t width) {
  std::string text;
  for (const Verdict& each : validation.verdicts) {
    if (each.group != group) continue;
    fmt::format_to(std::back_inserter(text), "{:<{}} {:<18} {:>14} {:>13} {:>9}  of {}\n",
                   each.result->run->name, width, "fits", in_words(each.measured),
                   stratagem::to_text(each.needed), to_text(each.kind()),
                   stratagem::to_text(each.capacity));
  }
  return text;
}

std::size_t name_width(const Validation& validation) {
  std::size_t width = 3;
  for (const Compared& each : validation.compared)
    width = std::max(width, each.result->run->name.size());
  for (const Verdict& each : validation.verdicts)
    width = std::max(width, each.result->run->name.size());
  return width;
}

int count(const Validation& validation, const std::string& group, Kind kind) {
  return static_cast<int>(std::ranges::count_if(validation.verdicts, [&](const Verdict& each) {
    return each.group == group && each.kind() == kind;
  }));
}

/// Of the runs that did fit, or did not: how many are predicted to need more than there is.
std::string too_large(const Validation& validation, const std::string& group, bool fitted) {
  int found = 0, all = 0;
  for (const Verdict& each : validation.verdicts) {
    if (each.group != group || each.measured != fitted) continue;
    ++all;
    found += each.needed > each.capacity ? 1 : 0;
  }
  return all == 0 ? "-" : fmt::format("{} of {}", found, all);
}

bool has_verdicts(const Validation& validation, const std::string& group) {
  return std::ranges::find(validation.verdicts, group, &Verdict::group) !=
         validation.verdicts.end();
}

Json figures(const Validation& validation, const std::string& group) {
  Json list = Json::array();
  for (const Compared& each : validation.compared) {
    if (each.group != group) continue;
    list.push(Json::object()
                  .set("run", each.result->run->name)
                  .set("scenario", each.result->run->origin.file)
                  .set("figure", each.figure->name)
                  .set("measured", *each.figure->measured)
                  .set("predicted", *each.figure->predicted)
                  .set("error", each.figure->error())
                  .set("judges", each.judges)
                  .set("source", each.figure->source));
  }
  return list;
}

Json verdicts(const Validation& validation, const std::string& group) {
  Json list = Json::array();
  for (const Verdict& each : validation.verdicts) {
    if (each.group != group) continue;
    list.push(Json::object()
                  .set("run", each.result->run->name)
                  .set("scenario", each.result->run->origin.file)
                  .set("fits", each.measured)
                  .set("needed_bytes", each.needed.value)
                  .set("capacity_bytes", each.capacity.value)
                  .set("verdict", to_text(each.kind())));
  }
  return list;
}

Json statistics(const Validation& validation, const std::string& group) {
  Json list = Json::array();
  for (const ErrorStatistics& each : validation.statistics) {
    if (each.group != group) continue;
    list.push(Json::object()
                  .set("figure", each.figure)
                  .set("count", each.count)
                  .set("median_error", each.median)
                  .set("mean_absolute_error", each.mean_absolute)
                  .set("mean_error", each.mean)
                  .set("worst_error", each.worst)
                  .set("worst_run", each.worst_run));
  }
  return list;
}

/// One line for each group.
std::string ranking_statistics(const std::vector<study::Ranking>& rankings) {
  if (rankings.empty()) return "";
  std::string text =
      "\n| group | sweeps | rank correlation, median | least | choice within 3 % | mean loss |\n"
      "|---|--:|--:|--:|--:|--:|\n";
  for (const study::RankingStatistics& each : study::summed_up(rankings)) {
    fmt::format_to(std::back_inserter(text), "| {} | {} | {:.2f} | {:.2f} | {} | {} |\n",
                   each.group, each.sets, each.median_correlation, each.least_correlation,
                   each.near, percent("iteration_time", each.mean_loss, false));
  }
  return text;
}

/// One line for each set of plans.
std::string ranking_lines(const std::vector<study::Ranking>& rankings) {
  if (rankings.empty()) return "";
  std::string text =
      "\n| group | plans of | number | rank correlation | predicted fastest | slower than the "
      "fastest "
      "by |\n|---|---|--:|--:|---|--:|\n";
  for (const study::Ranking& one : rankings) {
    fmt::format_to(std::back_inserter(text), "| {} | {} | {} | {:.2f} | {} | {} |\n", one.group,
                   one.of, one.plans, one.correlation, one.chosen,
                   percent("iteration_time", one.loss, false));
  }
  return text;
}

Json to_json(const std::vector<study::Ranking>& rankings) {
  Json list = Json::array();
  for (const study::Ranking& one : rankings) {
    list.push(Json::object()
                  .set("group", one.group)
                  .set("of", one.of)
                  .set("plans", one.plans)
                  .set("rank_correlation", one.correlation)
                  .set("chosen", one.chosen)
                  .set("loss", one.loss)
                  .set("fastest", one.fastest));
  }
  return list;
}

/// Those that were to be compared.
std::string refused_lines(const Validation& validation) {
  if (validation.refused.empty()) return "";
  std::string text = "\nrefused:\n";
  for (const study::Result* each : validation.refused)
    text += fmt::format("- {}: {}\n", each->run->name, each->outcome.reason);
  return text;
}

Json refused(const Validation& validation) {
  Json list = Json::array();
  for (const study::Result* each : validation.refused) {
    list.push(Json::object()
                  .set("run", each->run->name)
                  .set("scenario", each->run->origin.file)
                  .set("reason", each->outcome.reason));
  }
  return list;
}

std::string summary(const Validation& validation, const std::vector<study::Ranking>& rankings) {
  std::string text =
      "| group | figure | values | median error | mean absolute | mean error | worst error | of |\n"
      "|---|---|--:|--:|--:|--:|--:|---|\n";
  for (const ErrorStatistics& each : validation.statistics) {
    fmt::format_to(std::back_inserter(text), "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
                   each.group, each.figure, each.count, percent(each.figure, each.median, false),
                   percent(each.figure, each.mean_absolute, false), percent(each.figure, each.mean),
                   percent(each.figure, each.worst), each.worst_run);
  }
  text += ranking_statistics(rankings);
  if (validation.verdicts.empty()) return text + refused_lines(validation);
  text +=
      "\n| group | verdicts | right | wrong | undecided | too large, of those that did not fit | "
      "too large, of those that did |\n"
      "|---|--:|--:|--:|--:|--:|--:|\n";
  for (const std::string& group : validation.groups()) {
    if (!has_verdicts(validation, group)) continue;
    const int right = count(validation, group, Kind::right);
    const int wrong = count(validation, group, Kind::wrong);
    const int undecided = count(validation, group, Kind::undecided);
    fmt::format_to(std::back_inserter(text), "| {} | {} | {} | {} | {} | {} | {} |\n", group,
                   right + wrong + undecided, right, wrong, undecided,
                   too_large(validation, group, false), too_large(validation, group, true));
  }
  return text + refused_lines(validation);
}

}  // namespace

std::string validation_table(const Validation& validation) {
  const std::size_t width = name_width(validation);
  std::string text;
  for (const std::string& group : validation.groups()) {
    fmt::format_to(std::back_inserter(text), "{}\n{:<{}} {:<18} {:>14} {:>13} {:>9}\n", group,
                   "run", width, "figure", "measured", "predicted", "error");
    text += figure_lines(validation, group, width) + verdict_lines(validation, group, width) + "\n";
  }
  const std::vector<study::Ranking> rankings = study::rankings(validation);
  return text + summary(validation, rankings) + ranking_lines(rankings);
}

std::string validation_summary(const Validation& validation) {
  return summary(validation, study::rankings(validation));
}

Json to_json(const Validation& validation) {
  Json groups = Json::array();
  for (const std::string& group : validation.groups()) {
    groups.push(Json::object()
                    .set("group", group)
                    .set("figures", figures(validation, group))
                    .set("verdicts", verdicts(validation, group))
                    .set("statistics", statistics(validation, group)));
  }
  return Json::object()
      .set("schema", "stratagem/validation/1")
      .set("groups", groups)
      .set("rankings", to_json(study::rankings(validation)))
      .set("refused", refused(validation));
}

}  // namespace stratagem::report

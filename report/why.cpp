// The same columns for plans of a search and runs of a scenario.
#include "report/why.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity_text.hpp"
#include "report/figure_text.hpp"
#include "report/memory_table.hpp"
#include "report/wrapped.hpp"

namespace stratagem::report {
namespace {

std::string share(double part) { return fmt::format("{:.0f} %", 100 * part); }

/// "-12.3 %"
std::string change_text(const study::Gain& gain, Seconds now) {
  if (!gain.iteration_time) return "-";
  const double percent = 100 * (*gain.iteration_time / now - 1);
  return std::abs(percent) < 0.05 ? "0.0 %" : fmt::format("{:+.1f} %", percent);
}

/// As people call it.
std::string words_of(std::string resource) {
  std::ranges::replace(resource, '_', ' ');
  return resource == "gpus" ? "GPUs" : resource;
}

/// The largest gain that can be seen, but for that from more GPUs.
std::string helps_most(const Explained& run) {
  constexpr double seen = 0.9995;
  Seconds least = seen * run.outcome->metrics->iteration_time;
  std::string most = "none";
  for (const study::Gain& gain : run.gains) {
    if (gain.of == "gpus" || !gain.iteration_time || *gain.iteration_time >= least) continue;
    least = *gain.iteration_time;
    most = words_of(gain.of);
  }
  return most;
}

std::vector<Column> gain_columns(const std::vector<Explained>& runs) {
  std::vector<Column> columns;
  for (const study::Gain& gain : runs.front().gains) columns.push_back({words_of(gain.of)});
  columns.push_back({"helps most"});
  for (const Explained& run : runs) {
    std::vector<std::string> texts;
    for (const study::Gain& gain : run.gains)
      texts.push_back(change_text(gain, run.outcome->metrics->iteration_time));
    texts.push_back(helps_most(run));
    add_row(columns, texts);
  }
  return columns;
}

}  // namespace

std::vector<Column> shares_of_time(const std::vector<Spent>& all) {
  std::vector<Column> columns = {{"comp."}, {"comm."}, {"idle"}};
  for (const Spent& one : all) {
    const double exposed = one.exposed_communication / one.iteration;
    add_row(columns,
            {share(1 - exposed - one.bubble_fraction), share(exposed), share(one.bubble_fraction)});
  }
  return columns;
}

std::string why_text(const std::vector<Explained>& runs) {
  if (runs.empty()) return "";
  std::vector<Column> columns = {{.heading = "run", .left = true}, {"time"}};
  std::vector<Spent> spent;
  for (const Explained& run : runs) {
    const sim::Metrics& metrics = *run.outcome->metrics;
    spent.push_back(
        {metrics.iteration_time, metrics.exposed_communication, metrics.bubble_fraction});
    add_row(columns, {run.name, value_text("iteration_time", metrics.iteration_time.value)});
  }
  for (Column& column : shares_of_time(spent)) columns.push_back(std::move(column));
  for (Column& column : gain_columns(runs)) columns.push_back(std::move(column));
  std::string text = "Why: an iteration, and how it changes with twice as much of one thing\n\n" +
                     text_of(columns) + "\nThe fullest GPU:\n";
  for (const Explained& run : runs)
    text += wrapped(
        fmt::format("  {}: {} used; allocated: {}", run.name, to_text(run.outcome->memory.used),
                    breakdown(sim::fullest(run.outcome->devices))),
        4);
  return text + "\n" +
         wrapped(
             "Each change was simulated: the same plan on such a machine (docs/guide/search.md). "
             "Of "
             "the time " +
                 std::string(shares_legend) +
                 " Where two limits are equal, more of one alone changes nothing. Twice the GPUs: "
                 "as data ranks, for the same batch; - where that is no plan. "
                 "The last column leaves them out. Runs that do not fit are not in the table.",
             2);
}

Json to_json(const std::vector<study::Gain>& gains) {
  Json json = Json::object();
  for (const study::Gain& gain : gains)
    json.set(gain.of, gain.iteration_time ? Json(gain.iteration_time->value) : Json());
  return json;
}

}  // namespace stratagem::report

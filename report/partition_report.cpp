// A line for each part, then two simulations.
#include "report/partition_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/quantity_text.hpp"
#include "report/columns.hpp"
#include "report/figure_text.hpp"
#include "report/own_and_found.hpp"
#include "report/wrapped.hpp"
#include "study/simulate.hpp"

namespace stratagem::report {
namespace {

constexpr const char* needs_legend =
    " Needs: estimated, without a device's context, communicators, workspace and what an allocator "
    "holds besides.";

std::string parts_table(const Partition& partition) {
  const std::vector<search::Part>& parts = partition.proposal.parts;
  const bool replicas =
      std::ranges::any_of(parts, [](const search::Part& part) { return part.replicas > 1; });
  std::vector<Column> columns = {{partition.searcher.parts}, {.heading = "", .left = true}};
  if (replicas) columns.push_back({"replicas"});
  columns.push_back({"time"});
  if (parts.front().memory) columns.push_back({"needs"});
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<std::string> row = {std::to_string(i), parts[i].what};
    if (replicas) row.push_back(std::to_string(parts[i].replicas));
    row.push_back(to_text(parts[i].time));
    if (parts[i].memory) row.push_back(to_text(*parts[i].memory));
    add_row(columns, row);
  }
  return text_of(columns);
}

std::string status_of(const study::Outcome& outcome) {
  using Status = study::Outcome::Status;
  if (outcome.status == Status::ok) return "ok";
  return outcome.status == Status::refused ? "refused" : "out_of_memory";
}

Json outcome_json(const study::Outcome& outcome) {
  Json json = Json::object().set("status", status_of(outcome));
  if (!outcome.reason.empty()) json.set("reason", outcome.reason);
  if (!outcome.metrics) return json;
  return json.set("iteration_time_s", outcome.metrics->iteration_time.value)
      .set("memory_bytes", outcome.memory.used.value);
}

std::string gap_text(const Partition& partition) {
  const search::SpaceGap& gap = *partition.gap;
  const Seconds found = partition.proposed.metrics->iteration_time;
  if (gap.iteration_time == found) {
    return wrapped(fmt::format("Of all {} divisions, simulated where they are not surely slower, "
                               "none is faster.",
                               gap.divisions),
                   2);
  }
  return wrapped(fmt::format("Of all {} divisions, simulated where they are not surely slower, the "
                             "fastest is {}: {}, {:.2f} % less.",
                             gap.divisions, gap.fastest.text(),
                             value_text("iteration_time", gap.iteration_time.value),
                             100 * (1 - gap.iteration_time / found)),
                 2);
}

}  // namespace

std::string partition_table(const Partition& partition) {
  const search::Searcher& searcher = partition.searcher;
  std::string text = fmt::format("How {} divides \"{}\"\n\n", searcher.name, partition.run.name);
  text += parts_table(partition) + "\n";
  text += wrapped(
      fmt::format("No other division{} has a smaller objective than {}: {}.{} Write it as "
                  "{} in \"strategy\".",
                  partition.proposal.parts.front().memory ? " that needs no more memory" : "",
                  to_text(partition.proposal.objective), searcher.objective,
                  partition.proposal.parts.front().memory ? needs_legend : "",
                  partition.proposal.strategy.text()),
      2);
  text += "\n" + own_and_found("division", partition.own, partition.proposed);
  return text + (partition.gap ? "\n" + gap_text(partition) : "");
}

Json partition_json(const Partition& partition) {
  Json parts = Json::array();
  for (const search::Part& part : partition.proposal.parts) {
    Json one = Json::object()
                   .set("what", part.what)
                   .set("replicas", part.replicas)
                   .set("time_s", part.time.value);
    if (part.memory) one.set("memory_bytes", part.memory->value);
    parts.push(one);
  }
  Json json = Json::object();
  json.set("run", partition.run.name)
      .set("searcher", partition.searcher.name)
      .set("objective_s", partition.proposal.objective.value)
      .set("strategy", partition.proposal.strategy)
      .set("parts", parts)
      .set("own", outcome_json(partition.own))
      .set("proposed", outcome_json(partition.proposed));
  if (partition.gap) {
    json.set("fastest", Json::object()
                            .set("divisions", static_cast<std::int64_t>(partition.gap->divisions))
                            .set("strategy", partition.gap->fastest)
                            .set("iteration_time_s", partition.gap->iteration_time.value));
  }
  return json;
}

}  // namespace stratagem::report

// Plans by rank; combinations that are none by reason.
#include "report/search_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "base/json_copy.hpp"
#include "base/json_reader.hpp"
#include "base/quantity_text.hpp"
#include "report/columns.hpp"
#include "report/figure_text.hpp"
#include "report/why.hpp"
#include "report/wrapped.hpp"
#include "study/results.hpp"
#include "study/scenario.hpp"

namespace stratagem::report {
namespace {

using search::Answer;
using search::Space;
using search::Swept;

std::size_t shown(const Swept& swept, std::size_t best) {
  return std::min(best, swept.answers.size());
}

/// "32.9 GB", and whether nearly all of a GPU's memory is needed.
std::string memory_text(const search::Trial& trial) {
  return to_text(trial.memory) + (trial.tight ? ", tight" : "");
}

/// What a billion tokens cost, if prices are known.
void add_cost(std::vector<Column>& columns, const Space& space, const Swept& swept,
              std::size_t count) {
  const study::Run run = study::run_over(space.defaults(), swept.answers.front().settings, "best");
  if (!run.cluster.design().price_per_gpu_hour) return;
  columns.push_back({"cost/Gtoken"});
  for (std::size_t i = 0; i < count; ++i) {
    const search::Trial& trial = swept.answers[i].trial;
    const auto cost = study::cost_of_billion_tokens(run, trial.gpus, trial.iteration_time);
    columns.back().texts.push_back(fmt::format("{:.4g}", *cost));
  }
}

/// What a plan takes, and where an iteration's time goes.
std::vector<Column> measures(const Space& space, const Swept& swept, std::size_t count) {
  std::vector<Column> columns = {{"rank"}, {"GPUs"}, {"time"}, {"TFLOP/s"}};
  std::vector<Spent> spent;
  for (std::size_t i = 0; i < count; ++i) {
    const search::Trial& trial = swept.answers[i].trial;
    spent.push_back({trial.iteration_time, trial.exposed_communication, trial.bubble_fraction});
    add_row(columns, {std::to_string(i + 1), std::to_string(trial.gpus),
                      value_text("iteration_time", trial.iteration_time.value),
                      fmt::format("{:.1f}", trial.model_rate / 1_TFLOPps)});
  }
  for (Column& column : shares_of_time(spent)) columns.push_back(std::move(column));
  columns.push_back({"memory"});
  for (std::size_t i = 0; i < count; ++i)
    columns.back().texts.push_back(memory_text(swept.answers[i].trial));
  add_cost(columns, space, swept, count);
  return columns;
}

/// Keys that vary, and those that a searcher found; last the number of data ranks where that
/// follows from them.
std::vector<Column> chosen_keys(const Space& space, const Swept& swept, std::size_t count) {
  std::vector<Column> columns;
  std::map<std::string, std::string> fixed;
  for (const search::Dimension& one : space.dimensions()) {
    if (one.key == "gpus") continue;
    fixed.emplace(one.key, one.values.front().text());
    if (one.values.size() > 1 || one.searched) columns.push_back({one.key, {}});
  }
  for (std::size_t i = 0; i < count; ++i) {
    const JsonReader strategy =
        JsonReader::from_text(swept.answers[i].settings.text(), space.file()).at("strategy");
    for (const std::string& key : strategy.keys()) {
      if (std::ranges::count(columns, key, &Column::heading) > 0 || key == "data") continue;
      if (!fixed.contains(key) || fixed.at(key) != strategy.at(key).dump())
        columns.push_back({key, {}});
    }
  }
  if (std::ranges::count(columns, "data", &Column::heading) == 0) columns.push_back({"data", {}});
  return columns;
}

std::vector<Column> choices(const Space& space, const Swept& swept, std::size_t count) {
  std::vector<Column> columns = chosen_keys(space, swept, count);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonReader settings =
        JsonReader::from_text(swept.answers[i].settings.text(), space.file());
    const JsonReader strategy = settings.at("strategy"), training = settings.at("training");
    for (Column& column : columns) {
      const JsonReader& object = column.heading == "micro_batch" ? training : strategy;
      const auto value = object.find(column.heading);
      std::string text = value ? value->dump() : "";
      std::erase(text, '"');
      column.texts.push_back(text);
    }
  }
  return columns;
}

/// Is a reason at a key that all plans have alike?
bool is_common(const Space& space, const search::Refused& refused) {
  const std::string key = refused.reason.substr(0, refused.reason.find(':'));
  const auto& varied = space.dimensions();
  return key != "strategy" &&
         std::ranges::find(varied, key, &search::Dimension::key) == varied.end();
}

/// Reasons by number of combinations, most first. Where no plan is left, those at keys that all
/// have alike come before: nothing runs until they are changed.
std::vector<search::Refused> by_number(const Space& space, const Swept& swept) {
  std::vector<search::Refused> reasons;
  for (const auto& [alike, refused] : swept.refused) reasons.push_back(refused);
  std::ranges::stable_sort(reasons, std::greater<>(), &search::Refused::combinations);
  if (swept.answers.empty() && swept.too_large == 0)
    std::ranges::stable_sort(reasons, std::greater<>(),
                             [&](const auto& one) { return is_common(space, one); });
  return reasons;
}

std::string counts(const Space& space, const Swept& swept) {
  std::size_t refused = 0;
  for (const auto& [alike, some] : swept.refused) refused += some.combinations;
  std::string text = fmt::format(
      "{} combinations, of which\n{:>8} are left out: they vary a key that is of no use there\n"
      "{:>8} are no plans, for such reasons:\n",
      swept.combinations, swept.left_out, refused);
  for (const search::Refused& some : by_number(space, swept))
    text += wrapped(fmt::format("{:>14}  {}", some.combinations, some.reason), 16);
  text += fmt::format(
      "{:>8} need more memory than there is\n"
      "{:>8} are surely no better than the last one above\n"
      "{:>8} were simulated and fit\n",
      swept.too_large, swept.not_better, swept.answers.size());
  if (const std::vector<std::string> left = space.degrees_left_alone(); !left.empty()) {
    text +=
        wrapped(fmt::format("Not varied, since \"search\" does not name them, among others: {}.",
                            fmt::join(left, ", ")),
                2);
  }
  if (swept.too_large == 0 || !swept.answers.empty()) return text;
  return text + wrapped(fmt::format("Closest: {}. It {}.", space.words(swept.nearest),
                                    swept.nearest_reason),
                        2);
}

Json as_json(const Space& space, const Answer& answer) {
  const study::Run run = study::run_over(space.defaults(), answer.settings, "answer");
  const search::Trial& trial = answer.trial;
  const double samples = run.batch.global / trial.iteration_time.value;
  Json json = Json::object();
  if (const auto cost = study::cost_of_billion_tokens(run, trial.gpus, trial.iteration_time))
    json.set("cost_per_billion_tokens", *cost);
  return json.set("combination", static_cast<std::int64_t>(answer.number))
      .set("settings", answer.settings)
      .set("gpus", trial.gpus)
      .set("iteration_time_s", trial.iteration_time.value)
      .set("least_iteration_time_s", answer.bounds.iteration_time.value)
      .set("steady", trial.steady)
      .set("tokens_per_s", samples * static_cast<double>(run.batch.sequence))
      .set("model_tflops_per_gpu", trial.model_rate / 1_TFLOPps)
      .set("bubble_fraction", trial.bubble_fraction)
      .set("exposed_communication_s", trial.exposed_communication.value)
      .set("peak_used_bytes", trial.memory.value)
      .set("tight", trial.tight)
      .set("least_memory_bytes", answer.bounds.memory.value);
}

/// What the runs of the space assume, as the best plan says it.
std::string assumed(const Space& space, const Swept& swept) {
  const Json& settings = swept.answers.front().settings;
  const std::string text =
      study::run_over(space.defaults(), settings, "best").compared.all_assumed();
  return text.empty() ? "" : wrapped("Assumed: " + text, 2);
}

std::string why(const std::vector<search::Explanation>& best) {
  std::vector<Explained> plans;
  for (const search::Explanation& one : best)
    plans.push_back({fmt::format("plan {}", plans.size() + 1), &one.outcome, one.gains});
  return plans.empty() ? "" : "\n" + why_text(plans);
}

/// Where a file that a scenario names lies, as another folder sees it. What stands in the library
/// keeps its name.
std::string seen_from(const std::string& folder, const std::string& scenario,
                      const std::string& kind, const std::string& name) {
  const std::filesystem::path beside = std::filesystem::path(scenario).parent_path();
  const bool path = name.ends_with(".json");
  const std::filesystem::path file = path ? beside / name : beside / kind / (name + ".json");
  if (!path && !std::filesystem::exists(file)) return name;
  return std::filesystem::proximate(std::filesystem::absolute(file),
                                    std::filesystem::absolute(folder))
      .string();
}

/// Of the keys that name files, with the folder beside the scenario in which these are.
const std::map<std::string, std::string> named = {
    {"profile", "profiles"}, {"stack", "stacks"}, {"node", "nodes"}};

Json moved(const JsonReader& object, const std::string& folder) {
  Json result = Json::object();
  for (const std::string& key : object.keys()) {
    const JsonReader value = object.at(key);
    if (const auto kind = named.find(key); kind != named.end()) {
      result.set(key, seen_from(folder, object.file(), kind->second, value.text()));
    } else {
      result.set(key, key == "cluster" ? moved(value, folder) : copy_of(value));
    }
  }
  return result;
}

}  // namespace

std::string search_table(const Space& space, const Swept& swept, std::size_t best,
                         const std::vector<search::Explanation>& explained) {
  const std::string heading = space.question() + "\n\n";
  if (swept.answers.empty())
    return heading + (swept.too_large > 0 ? "No plan of the space fits." : "There is no plan.") +
           "\n\n" + counts(space, swept);
  std::vector<Column> columns = measures(space, swept, shown(swept, best));
  for (Column& column : choices(space, swept, shown(swept, best)))
    columns.push_back(std::move(column));
  return heading + text_of(columns) + "\n" + counts(space, swept) +
         wrapped("Time: of an iteration, of which " + std::string(shares_legend) +
                     " TFLOP/s: of the model, per GPU. Memory: of the fullest GPU.",
                 2) +
         assumed(space, swept) + why(explained);
}

Json search_json(const Space& space, const Swept& swept, std::size_t best,
                 const std::vector<search::Explanation>& explained) {
  Json refused = Json::array();
  for (const auto& [why, number] : by_number(space, swept)) {
    refused.push(
        Json::object().set("reason", why).set("combinations", static_cast<std::int64_t>(number)));
  }
  Json found = Json::array();
  for (std::size_t i = 0; i < shown(swept, best); ++i) {
    Json plan = as_json(space, swept.answers[i]);
    if (i < explained.size()) plan.set("iteration_time_with_twice_s", to_json(explained[i].gains));
    found.push(plan);
  }
  Json unbeaten = Json::array();
  for (const Answer* answer : search::front(swept.answers)) unbeaten.push(as_json(space, *answer));
  Json json = Json::object()
                  .set("schema", "stratagem/search/1")
                  .set("scenario", space.file())
                  .set("question", space.question())
                  .set("combinations", static_cast<std::int64_t>(swept.combinations))
                  .set("left_out", static_cast<std::int64_t>(swept.left_out))
                  .set("refused", refused)
                  .set("too_large", static_cast<std::int64_t>(swept.too_large))
                  .set("not_better", static_cast<std::int64_t>(swept.not_better))
                  .set("simulated", static_cast<std::int64_t>(swept.simulated));
  if (swept.too_large > 0) {
    json.set("nearest", Json::object()
                            .set("settings", swept.nearest_settings)
                            .set("lacks_bytes", swept.nearest_lacks.value)
                            .set("reason", swept.nearest_reason));
  }
  return json.set("best", found).set("front_of_simulated", unbeaten);
}

Json best_plans(const Space& space, const Swept& swept, std::size_t best,
                const std::string& folder) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < shown(swept, best); ++i) {
    const Answer& answer = swept.answers[i];
    const JsonReader settings = JsonReader::from_text(answer.settings.text(), space.file());
    Json run = Json::object().set("name", fmt::format("plan {}", i + 1));
    for (const std::string& key : settings.keys()) run.set(key, copy_of(settings.at(key)));
    runs.push(run);
  }
  return Json::object()
      .set("question", space.question())
      .set("defaults", moved(space.defaults(), folder))
      .set("runs", runs);
}

}  // namespace stratagem::report

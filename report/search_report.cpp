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
#include "report/figure_text.hpp"
#include "report/wrapped.hpp"

namespace stratagem::report {
namespace {

using search::Answer;
using search::Space;
using search::Swept;

std::size_t shown(const Swept& swept, std::size_t best) {
  return std::min(best, swept.answers.size());
}

Seconds idle(const Answer& answer) {
  return answer.outcome.metrics->bubble_fraction * answer.outcome.metrics->iteration_time;
}

std::string line(const Space& space, const Answer& answer, std::size_t rank) {
  const sim::Metrics& m = *answer.outcome.metrics;
  const auto time = [](Seconds seconds) { return value_text("iteration_time", seconds.value); };
  const Seconds computing = m.iteration_time - m.exposed_communication - idle(answer);
  return wrapped(fmt::format("{:>4} {:>6} {:>10} {:>10} {:>10} {:>10} {:>8.1f} {:>9}  {}\n", rank,
                             answer.outcome.gpus, time(m.iteration_time), time(computing),
                             time(m.exposed_communication), time(idle(answer)),
                             answer.outcome.model_rate() / 1_TFLOPps,
                             to_text(answer.outcome.memory.used), space.words(answer.number)),
                 75);
}

/// Reasons by number of combinations, most first.
std::vector<std::pair<std::string, std::size_t>> by_number(const Swept& swept) {
  std::vector<std::pair<std::string, std::size_t>> reasons(swept.refused.begin(),
                                                           swept.refused.end());
  std::ranges::stable_sort(reasons, std::greater<>(), &std::pair<std::string, std::size_t>::second);
  return reasons;
}

std::string counts(const Space& space, const Swept& swept, std::size_t best) {
  std::size_t refused = 0;
  for (const auto& [why, number] : swept.refused) refused += number;
  std::string text = fmt::format(
      "{} combinations, every one of them answered:\n"
      "{:>8} fit and were simulated; of {} the memory was found too small, of most before that\n"
      "{:>8} cannot be better than the last of the best, by a lower bound of their time\n"
      "{:>8} are no plans:\n",
      swept.combinations, swept.answers.size(), swept.too_large, swept.not_better, refused);
  static_cast<void>(best);
  for (const auto& [why, number] : by_number(swept))
    text += wrapped(fmt::format("{:>12}  {}\n", number, why), 14);
  if (swept.too_large > 0 && swept.answers.empty()) {
    text += wrapped(fmt::format("The one that lacks the least memory needs at least {}: {}\n",
                                to_text(swept.nearest_memory), space.words(swept.nearest)),
                    2);
  }
  return text;
}

Json as_json(const Space& space, const Answer& answer) {
  const study::Run run = study::run_over(space.defaults(), answer.settings, "answer");
  const sim::Metrics& m = *answer.outcome.metrics;
  const double samples = run.batch.global / m.iteration_time.value;
  return Json::object()
      .set("combination", static_cast<std::int64_t>(answer.number))
      .set("settings", answer.settings)
      .set("gpus", answer.outcome.gpus)
      .set("iteration_time_s", m.iteration_time.value)
      .set("least_iteration_time_s", answer.bounds.iteration_time.value)
      .set("steady", m.steady)
      .set("tokens_per_s", samples * static_cast<double>(run.batch.sequence))
      .set("model_tflops_per_gpu", answer.outcome.model_rate() / 1_TFLOPps)
      .set("bubble_fraction", m.bubble_fraction)
      .set("exposed_communication_s", m.exposed_communication.value)
      .set("peak_used_bytes", answer.outcome.memory.used.value)
      .set("least_memory_bytes", answer.bounds.memory.value);
}

/// Where a file that a scenario names lies, as another folder sees it.
std::string seen_from(const std::string& folder, const std::string& scenario,
                      const std::string& kind, const std::string& name) {
  const std::filesystem::path beside = std::filesystem::path(scenario).parent_path();
  const bool path = name.ends_with(".json");
  const std::filesystem::path file = path ? beside / name : beside / kind / (name + ".json");
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

std::string search_table(const Space& space, const Swept& swept, std::size_t best) {
  std::string text = space.question() + "\n\n";
  if (swept.answers.empty())
    return text + "No plan of the space fits.\n\n" + counts(space, swept, best);
  text += fmt::format("{:>4} {:>6} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}\n", "", "", "iteration",
                      "of that", "exposed", "", "TFLOP/s", "memory");
  text += fmt::format("{:>4} {:>6} {:>10} {:>10} {:>10} {:>10} {:>8} {:>9}  {}\n", "rank", "GPUs",
                      "time", "computing", "comm.", "idle", "per GPU", "per GPU", "plan");
  for (std::size_t i = 0; i < shown(swept, best); ++i) text += line(space, swept.answers[i], i + 1);
  return text + "\n" + counts(space, swept, best);
}

Json search_json(const Space& space, const Swept& swept, std::size_t best) {
  Json refused = Json::array();
  for (const auto& [why, number] : by_number(swept)) {
    refused.push(
        Json::object().set("reason", why).set("combinations", static_cast<std::int64_t>(number)));
  }
  Json found = Json::array();
  for (std::size_t i = 0; i < shown(swept, best); ++i) found.push(as_json(space, swept.answers[i]));
  Json unbeaten = Json::array();
  for (const Answer* answer : search::front(swept.answers)) unbeaten.push(as_json(space, *answer));
  Json json = Json::object()
                  .set("schema", 1)
                  .set("scenario", space.file())
                  .set("question", space.question())
                  .set("combinations", static_cast<std::int64_t>(swept.combinations))
                  .set("refused", refused)
                  .set("too_large", static_cast<std::int64_t>(swept.too_large))
                  .set("not_better", static_cast<std::int64_t>(swept.not_better))
                  .set("simulated", static_cast<std::int64_t>(swept.simulated));
  if (swept.too_large > 0) {
    json.set("nearest", Json::object()
                            .set("settings", space.settings(swept.nearest))
                            .set("least_memory_bytes", swept.nearest_memory.value));
  }
  return json.set("best", found).set("front", unbeaten);
}

Json best_plans(const Space& space, const Swept& swept, std::size_t best,
                const std::string& folder) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < shown(swept, best); ++i) {
    const Answer& answer = swept.answers[i];
    const JsonReader settings = JsonReader::from_text(answer.settings.text(), space.file());
    Json run = Json::object().set("name", fmt::format("{}: {}", i + 1, space.words(answer.number)));
    for (const std::string& key : settings.keys()) run.set(key, copy_of(settings.at(key)));
    runs.push(run);
  }
  return Json::object()
      .set("question", space.question())
      .set("defaults", moved(space.defaults(), folder))
      .set("runs", runs);
}

}  // namespace stratagem::report

// Simulates a run again, with one setting changed at a time.
#include "study/gains.hpp"

#include <utility>

#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"
#include "study/what_if.hpp"

namespace stratagem::study {
namespace {

/// Changes of a run's settings, by what there is twice of; none where it has no such setting.
using Changes = std::vector<std::pair<std::string, std::optional<Json>>>;

/// A plan file says where each operator runs.
std::optional<Json> twice_the_gpus(const Run& run, const JsonReader& settings) {
  if (run.plan) return std::nullopt;
  const JsonReader cluster = settings.at("cluster");
  Json more = Json::object();
  for (const char* key : {"gpus", "ranks", "nodes"}) {
    if (cluster.has(key)) more.set(key, 2 * cluster.at(key).whole_number());
  }
  return Json::object()
      .set("cluster", more)
      .set("strategy", Json::object().set("data", 2 * run.options.data));
}

/// A run that already supposes a factor gets twice that.
Changes changes_of(const Run& run) {
  const JsonReader settings = JsonReader::from_text(run.resolved.text(), run.origin.file);
  Changes changes;
  for (const Resource& resource : resources()) {
    if (!resource.of_time) continue;
    double factor = 2;
    if (const auto supposed = settings.find("what_if")) {
      if (const auto now = supposed->find(resource.name)) factor *= now->number();
    }
    changes.emplace_back(resource.name,
                         Json::object().set("what_if", Json::object().set(resource.name, factor)));
  }
  changes.emplace_back("gpus", twice_the_gpus(run, settings));
  return changes;
}

std::optional<Seconds> time_with(const Run& run, const std::optional<Json>& change) {
  if (!change) return std::nullopt;
  try {
    const Outcome outcome = simulate(with_settings(run, *change), {.memory_first = true}).outcome;
    if (outcome.status == Outcome::Status::ok) return outcome.metrics->iteration_time;
  } catch (const InputError&) {
    // The batch does not divide by so many ranks.
  }
  return std::nullopt;
}

}  // namespace

std::vector<Gain> gains(const Run& run, int threads) {
  const Changes changes = changes_of(run);
  std::vector<Gain> all(changes.size());
  for_each_index(changes.size(), threads, [&](std::size_t i) {
    all[i] = {changes[i].first, time_with(run, changes[i].second)};
  });
  return all;
}

}  // namespace stratagem::study

// Suggests changes that make a run fit in memory, and simulates the most promising ones.
#include "study/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/input_error.hpp"
#include "base/parallel.hpp"
#include "study/plan_of.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {
namespace {

/// One setting: in which object of a run, under which key, and its value.
struct Setting {
  std::string object;
  std::string key;
  Json value;
};

/// Settings that only make sense together, such as more pipeline ranks for fewer data ranks.
using Change = std::vector<Setting>;

Setting strategy(const std::string& key, Json value) { return {"strategy", key, std::move(value)}; }

void add_micro_batches(std::vector<Change>& changes, const Run& run) {
  for (int size = run.batch.micro / 2; size >= 1; size /= 2)
    changes.push_back({{"training", "micro_batch", size}});
}

void add_recomputation(std::vector<Change>& changes, const strategies::Options& options) {
  if (options.recompute.what == "full") return;
  if (options.recompute.what == "none") changes.push_back({strategy("recompute", "selective")});
  changes.push_back({strategy("recompute", "full")});
}

/// What data-parallel ranks hold alike can be divided among them, or they become ranks of another
/// kind.
void add_for_data_ranks(std::vector<Change>& changes, const strategies::Options& options) {
  for (int stage = options.zero.stage + 1; stage <= 3 && options.data > 1; ++stage)
    changes.push_back({strategy("zero", Json::object().set("stage", stage))});
  for (int factor = 2; factor <= 8 && options.data % factor == 0; factor *= 2) {
    const Setting fewer = strategy("data", options.data / factor);
    changes.push_back({strategy("tensor", options.tensor * factor), fewer});
    changes.push_back({strategy("pipeline", options.pipeline * factor), fewer});
    changes.push_back({strategy("context", options.context * factor), fewer});
    if (const int ranks = options.expert * factor; options.data % ranks == 0)
      changes.push_back({strategy("expert", ranks)});
  }
}

void add_for_layers(std::vector<Change>& changes, const strategies::Options& options) {
  if (options.tensor > 1 && !options.division.tokens)
    changes.push_back({strategy("sequence_parallel", true)});
  for (int parts : {2, 4}) {
    if (const auto& now = options.division.coshard; now.attention == 1 && now.mlp == 1)
      changes.push_back({strategy("coshard", parts)});
  }
}

/// What waits in the memory of the host.
void add_for_host(std::vector<Change>& changes, const Run& run) {
  using Place = strategies::HostPlace;
  const strategies::Options& options = run.options;
  const auto layers = static_cast<int>(model::layers(*run.graph).size());
  for (int share : {2, 1}) {
    if (options.swap.layers == 0 && layers >= share)
      changes.push_back({strategy("swap", layers / share)});
  }
  if (options.offload.parameters == Place::none) {
    Change all = {strategy("offload", "parameters")};
    if (options.zero.stage < 3) all.push_back(strategy("zero", Json::object().set("stage", 3)));
    changes.push_back(all);
  }
  if (options.offload.optimizer != Place::none) return;
  Change offload = {strategy("offload", "optimizer")};
  if (options.data > 1 && options.zero.stage < 2)
    offload.push_back(strategy("zero", Json::object().set("stage", 2)));
  changes.push_back(offload);
}

/// What waits there already may come back, where the host's memory is what lacks.
void add_from_host(std::vector<Change>& changes, const strategies::Options& options) {
  if (options.offload.optimizer != strategies::HostPlace::none)
    changes.push_back({strategy("offload", "none")});
  if (options.swap.layers > 0) changes.push_back({strategy("swap", 0)});
}

/// Or it may go on to the drives.
void add_for_drives(std::vector<Change>& changes, const Run& run) {
  using Place = strategies::HostPlace;
  const strategies::OffloadOptions& now = run.options.offload;
  if (now.optimizer == Place::none || !run.cluster.design().drives) return;
  const auto places = [&](const char* parameters) {
    Json object = Json::object().set("optimizer", "drives");
    if (now.parameters != Place::none) object.set("parameters", parameters);
    changes.push_back({strategy("offload", object)});
  };
  if (now.optimizer == Place::memory) places(now.parameters == Place::drives ? "drives" : "memory");
  if (now.parameters == Place::memory) places("drives");
}

void add_schedules(std::vector<Change>& changes, const Run& run) {
  const strategies::Options& options = run.options;
  // Without a flush other weights are read than with it.
  if (options.pipeline == 1 || !plan_of(run).updates.flush) return;
  for (const char* name : {"1f1b", "zb-h1", "v-half", "v-min"}) {
    if (options.schedule != name) changes.push_back({strategy("schedule", name)});
  }
}

std::vector<Change> single_changes(const Run& run) {
  std::vector<Change> changes;
  add_micro_batches(changes, run);
  if (run.plan) return changes;
  add_recomputation(changes, run.options);
  add_for_data_ranks(changes, run.options);
  add_for_layers(changes, run.options);
  add_for_host(changes, run);
  add_from_host(changes, run.options);
  add_for_drives(changes, run);
  add_schedules(changes, run);
  return changes;
}

/// Both changes, or nothing where they set the same.
Change both(const Change& a, const Change& b) {
  Change result = a;
  for (const Setting& setting : b) {
    if (std::ranges::find(a, setting.key, &Setting::key) != a.end()) return {};
    result.push_back(setting);
  }
  return result;
}

Json settings(const Change& change) {
  Json training = Json::object();
  Json strategy = Json::object();
  for (const Setting& setting : change)
    (setting.object == "training" ? training : strategy).set(setting.key, setting.value);
  return Json::object().set("training", training).set("strategy", strategy);
}

std::string words(const Change& change) {
  std::string text;
  for (const Setting& setting : change) {
    text +=
        fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", setting.key, setting.value.text());
  }
  return text;
}

/// How a change turned out. One that is refused before it would be simulated is not kept.
struct Tried {
  Change change;
  Remedy remedy;
  bool fits = false;
  bool simulated = false;  ///< else `remedy.used` is a lower bound, and there is no time
};

/// None of a change that does not go with the run's other settings.
std::optional<Tried> try_change(const Run& run, const Change& change) {
  try {
    const Run changed = with_settings(run, settings(change));
    const Outcome outcome = simulate(changed, {.memory_first = true}).outcome;
    const Seconds time = outcome.metrics ? outcome.metrics->iteration_time : Seconds{};
    return Tried{
        change,
        {words(change), settings(change), time, outcome.memory.used, !outcome.tight.empty()},
        outcome.status == Outcome::Status::ok,
        outcome.metrics.has_value()};
  } catch (const InputError&) {
    return {};
  }
}

void try_all(std::vector<Tried>& tried, const Run& run, const std::vector<Change>& changes,
             int threads) {
  std::vector<std::optional<Tried>> results(changes.size());
  for_each_index(changes.size(), threads,
                 [&](std::size_t i) { results[i] = try_change(run, changes[i]); });
  for (std::optional<Tried>& result : results) {
    if (result) tried.push_back(std::move(*result));
  }
}

std::size_t count_fitting(const std::vector<Tried>& tried) {
  return static_cast<std::size_t>(std::ranges::count_if(tried, &Tried::fits));
}

/// Of the changes that do not suffice alone the one of every setting that leaves the least memory,
/// leanest first; last those of which a lower bound was enough.
std::vector<Change> leanest(std::vector<Tried> tried, std::size_t most) {
  std::erase_if(tried, &Tried::fits);
  std::ranges::stable_sort(tried, {},
                           [](const Tried& t) { return std::pair(!t.simulated, t.remedy.used); });
  std::vector<Change> changes;
  for (const Tried& t : tried) {
    const bool known = std::ranges::any_of(
        changes, [&](const Change& change) { return change.front().key == t.change.front().key; });
    if (!known && changes.size() < most) changes.push_back(t.change);
  }
  return changes;
}

/// Every change of `some` together with every later one of `all` that sets something else.
std::vector<Change> one_more(const std::vector<Change>& some, const std::vector<Change>& all) {
  std::vector<Change> changes;
  for (const Change& change : some) {
    const auto last =
        std::ranges::find(all, change.back().key, [](const Change& c) { return c.back().key; });
    for (auto next = last; next != all.end(); ++next) {
      if (Change more = both(change, *next); !more.empty()) changes.push_back(std::move(more));
    }
  }
  return changes;
}

}  // namespace

std::vector<Remedy> remedies(const Run& run, std::size_t most, int threads) {
  std::vector<Tried> tried;
  try_all(tried, run, single_changes(run), threads);
  const std::vector<Change> singles = leanest(tried, 6);
  std::vector<Change> together = singles;
  for (int settings = 2; settings <= 3 && count_fitting(tried) < most; ++settings) {
    together = one_more(together, singles);
    try_all(tried, run, together, threads);
  }
  std::erase_if(tried, [](const Tried& t) { return !t.fits; });
  std::ranges::stable_sort(tried, {}, [](const Tried& t) { return t.remedy.iteration_time; });
  std::vector<Remedy> result;
  for (const Tried& t : tried) {
    if (result.size() < most) result.push_back(t.remedy);
  }
  return result;
}

}  // namespace stratagem::study

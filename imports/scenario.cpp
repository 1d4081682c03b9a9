// Fills in what is missing, from the cluster to the data ranks.
#include "imports/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/input_error.hpp"
#include "base/json_copy.hpp"
#include "base/shortened.hpp"
#include "cost/stack.hpp"
#include "strategies/parallel/all.hpp"
#include "strategies/parallel/rank_order.hpp"
#include "study/library.hpp"
#include "study/reading/cluster_choice.hpp"

namespace stratagem::imports {
namespace {

JsonReader reader_of(const Json& json) { return JsonReader::from_text(json.text(), "import"); }

Json over(const Json& upper, const Json& lower) {
  return copy_of(reader_of(upper).over(reader_of(lower)));
}

/// A run under construction, and what was assumed of it.
class Filling {
 public:
  Filling(Json run, std::vector<Note>& assumed) : run_(std::move(run)), assumed_(assumed) {}

  [[nodiscard]] JsonReader at(const std::string& object) const {
    return reader_of(run_).at(object);
  }
  [[nodiscard]] bool has(const std::string& object, const std::string& key) const {
    return at(object).has(key);
  }
  void set(const std::string& object, const std::string& key, const Json& value) {
    run_ = over(Json::object().set(object, Json::object().set(key, value)), run_);
  }
  /// Unless it is there.
  void assume(const std::string& object, const std::string& key, const Json& value,
              const std::string& why) {
    if (has(object, key)) return;
    set(object, key, value);
    assumed_.push_back({fmt::format("{} {}", key, value.text()), why});
  }
  [[nodiscard]] Json& run() { return run_; }

 private:
  Json run_;
  std::vector<Note>& assumed_;
};

/// The number of GPUs of a strategy with one data rank.
int devices_of(const JsonReader& strategy) {
  strategies::Options options;
  for (const strategies::Strategy& one : strategies::all())
    options = read_object(one.options, strategy, options);
  return devices_of(options);
}

/// The first one whose facts hold for a precision; "plain" if there is none.
std::string stack_for(const std::vector<std::string>& stacks, const std::string& precision) {
  for (const std::string& name : stacks) {
    const std::string file = (study::library() / "stacks" / (name + ".json")).string();
    const std::vector<std::string> precisions = cost::read_stack(file).precisions;
    if (std::ranges::count(precisions, precision) > 0) return name;
  }
  return "plain";
}

void fill_batch(Filling& run, const std::optional<int>& accumulation) {
  run.assume("training", "precision", "bf16", "nothing says it");
  run.assume("training", "optimizer", "adam", "nothing says it");
  run.assume("training", "micro_batch", 1, "nothing says it");
  const auto micro = static_cast<int>(run.at("training").at("micro_batch").whole_number());
  const auto data = static_cast<int>(run.at("strategy").at("data").whole_number());
  if (accumulation && !run.has("training", "global_batch"))
    run.set("training", "global_batch", micro * data * *accumulation);
  const JsonReader strategy = run.at("strategy");
  const auto stages =
      strategy.has("pipeline") ? static_cast<int>(strategy.at("pipeline").whole_number()) : 1;
  run.assume("training", "global_batch", micro * data * stages,
             "a micro-batch for each data rank and stage");
}

void fill_degrees(Filling& run) {
  const bool data_said = run.has("strategy", "data");
  const int degrees = devices_of(run.at("strategy"));
  run.assume("cluster", "gpus", degrees, "as the degrees of parallelism multiply to");
  if (data_said) return;
  const auto gpus = static_cast<int>(run.at("cluster").at("gpus").whole_number());
  if (gpus % degrees != 0) {
    throw InputError("import", "/cluster/gpus",
                     fmt::format("a multiple of the degrees' product, {}", degrees),
                     std::to_string(gpus));
  }
  run.set("strategy", "data", gpus / degrees);
}

constexpr Json Settings::*objects[] = {&Settings::model, &Settings::training, &Settings::strategy,
                                       &Settings::cluster};

/// Does a file say this key of a run?
bool says(const Settings& settings, const std::string& key) {
  return std::ranges::any_of(
      objects, [&](Json Settings::*object) { return reader_of(settings.*object).has(key); });
}

/// What a later file assumes does not go over what an earlier one says.
void keep_said(const Settings& earlier, const std::string& key, Settings& all) {
  for (Json Settings::*object : objects) {
    const JsonReader said = reader_of(earlier.*object);
    if (said.has(key)) (all.*object).set(key, copy_of(said.at(key)));
  }
}

[[noreturn]] void no_model(const Settings& settings) {
  std::vector<std::string> unread;
  for (const Note& note : settings.left_out) unread.push_back(note.what);
  const std::string but = fmt::format("{}", fmt::join(unread, ", "));
  throw InputError("import", "/model",
                   "a model: arguments --num-layers and --hidden-size, a file that says it, or "
                   "--set model=NAME",
                   but.empty() ? "none" : "none; not read: " + shortened(but, 120));
}

/// The model that files say. A preset that was set replaces it, but for the length of samples.
Json model_of(const Settings& settings, std::vector<study::KeyValues>& changes) {
  const std::vector<std::string> preset = {"model", "preset"};
  const auto set = std::ranges::find(changes, preset, &study::KeyValues::path);
  if (set == changes.end()) return settings.model;
  Json model = Json::object().set("preset", set->values.front());
  const JsonReader said = reader_of(settings.model);
  if (said.has("sequence")) model.set("sequence", copy_of(said.at("sequence")));
  changes.erase(set);
  return model;
}

}  // namespace

Settings merged(const std::vector<Settings>& files) {
  Settings all;
  for (const Settings& one : files) {
    const Settings known = all;
    for (Json Settings::*object : objects) all.*object = over(one.*object, all.*object);
    std::erase_if(all.assumed, [&](const Note& note) { return says(one, note.what); });
    for (const Note& note : one.assumed) keep_said(known, note.what, all);
    if (!one.stacks.empty()) all.stacks = one.stacks;
    if (one.accumulation) all.accumulation = one.accumulation;
    all.left_out.insert(all.left_out.end(), one.left_out.begin(), one.left_out.end());
    for (const Note& note : one.assumed)
      if (!says(known, note.what)) all.assumed.push_back(note);
    all.no_matter.insert(all.no_matter.end(), one.no_matter.begin(), one.no_matter.end());
  }
  return all;
}

Imported scenario_of(const Settings& settings, const std::vector<study::KeyValues>& changes,
                     const std::string& name) {
  Imported result{.scenario = Json::object(), .settings = settings};
  std::vector<study::KeyValues> above = changes;
  const Json said = Json::object()
                        .set("name", name)
                        .set("model", model_of(settings, above))
                        .set("cluster", settings.cluster)
                        .set("training", settings.training)
                        .set("strategy", settings.strategy);
  Filling run(over(study::variants(above).front().settings, said), result.settings.assumed);
  if (!run.has("model", "family") && !run.has("model", "preset")) no_model(settings);
  if (!run.has("cluster", "node"))
    run.assume("cluster", "preset", "dgx-h100", "nothing says which servers");
  fill_degrees(run);
  fill_batch(run, settings.accumulation);
  const JsonReader whole = reader_of(run.run());
  if (!whole.has("profile")) run.run().set("profile", study::gpu_of(run.at("cluster")));
  if (!whole.has("stack")) {
    const std::string precision = run.at("training").at("precision").text();
    const std::string stack = stack_for(settings.stacks, precision);
    run.run().set("stack", stack);
    result.settings.assumed.push_back(
        {"stack " + stack,
         settings.stacks.empty()
             ? "nothing says which framework; this one counts none, so times are too short"
             : "its facts hold for " + precision});
  }
  // What was set is not assumed, whatever the files say.
  std::erase_if(result.settings.assumed, [&](const Note& note) {
    return std::ranges::any_of(
        changes, [&](const study::KeyValues& change) { return change.path.back() == note.what; });
  });
  Json ordered = Json::object();
  const JsonReader filled = reader_of(run.run());
  for (const char* key : {"name", "model", "cluster", "profile", "stack", "training", "strategy"})
    ordered.set(key, copy_of(filled.at(key)));
  result.scenario.set("question", fmt::format("How fast is {}, and does it fit?", name))
      .set("runs", Json::array().push(ordered));
  return result;
}

}  // namespace stratagem::imports

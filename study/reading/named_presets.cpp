// Writes the scenario anew where it has a name in place of an object.
#include "study/reading/named_presets.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/json_copy.hpp"
#include "model/zoo/all.hpp"
#include "model/zoo/presets.hpp"

namespace stratagem::study {
namespace {

constexpr const char* with_presets[] = {"model", "cluster"};

/// The defaults and the runs of a scenario, whatever else its keys hold.
std::vector<JsonReader> settings_of(const JsonReader& scenario) {
  std::vector<JsonReader> all;
  if (!scenario.is_object()) return all;
  if (const auto defaults = scenario.find("defaults")) all.push_back(*defaults);
  if (const auto runs = scenario.find("runs"); runs && runs->is_array())
    std::ranges::copy(runs->elements(), std::back_inserter(all));
  return all;
}

bool has_name(const JsonReader& settings) {
  return settings.is_object() && std::ranges::any_of(with_presets, [&](const char* key) {
           const auto value = settings.find(key);
           return value && value->is_string();
         });
}

/// Without null for what is not there anyway.
Json model_over(const Json& model, const std::optional<JsonReader>& below) {
  const JsonReader reader = JsonReader::from_text(model.text(), "model");
  Json result = Json::object();
  for (const std::string& key : reader.keys()) {
    const bool hides = below && below->is_object() && below->has(key);
    if (hides || !reader.at(key).is_null()) result.set(key, copy_of(reader.at(key)));
  }
  return result;
}

/// The names in settings as objects; `below` are the defaults of a run.
Json with_objects(const JsonReader& settings, const std::optional<JsonReader>& below) {
  Json result = copy_of(settings);
  if (!settings.is_object()) return result;
  for (const std::string key : with_presets) {
    const auto value = settings.find(key);
    if (!value || !value->is_string()) continue;
    const bool alone = below && key == "model";
    result.set(key, alone ? model_over(model_alone(value->text()), below->find(key))
                          : Json::object().set("preset", value->text()));
  }
  return result;
}

}  // namespace

Json model_alone(const std::string& preset) {
  const auto known = std::ranges::find(model::presets(), preset, &model::Preset::name);
  if (known == model::presets().end()) return Json::object().set("preset", preset);
  const JsonReader given = JsonReader::from_text(known->keys, "preset");
  Json keys = copy_of(given).set("preset", Json());
  const std::string name = given.at("family").text();
  for (const model::Family& family : model::families()) {
    if (family.name != name) continue;
    for (const OptionText& option : family.options)
      if (!given.has(option.key)) keys.set(option.key, Json());
  }
  return keys;
}

JsonReader with_named_presets(const JsonReader& scenario) {
  if (std::ranges::none_of(settings_of(scenario), &has_name)) return scenario;
  Json result = copy_of(scenario);
  if (const auto defaults = scenario.find("defaults"))
    result.set("defaults", with_objects(*defaults, {}));
  if (const auto runs = scenario.find("runs"); runs && runs->is_array()) {
    Json list = Json::array();
    for (const JsonReader& run : runs->elements())
      list.push(with_objects(run, scenario.find("defaults")));
    result.set("runs", list);
  }
  return JsonReader::from_text(result.text(), scenario.file(), scenario.path());
}

}  // namespace stratagem::study

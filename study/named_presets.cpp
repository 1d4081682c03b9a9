// Writes the scenario anew where it has a name in place of an object.
#include "study/named_presets.hpp"

#include <algorithm>
#include <vector>

#include "base/json_copy.hpp"

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

Json with_objects(const JsonReader& settings) {
  Json result = copy_of(settings);
  if (!settings.is_object()) return result;
  for (const char* key : with_presets) {
    const auto value = settings.find(key);
    if (value && value->is_string()) result.set(key, Json::object().set("preset", value->text()));
  }
  return result;
}

}  // namespace

JsonReader with_named_presets(const JsonReader& scenario) {
  if (std::ranges::none_of(settings_of(scenario), &has_name)) return scenario;
  Json result = copy_of(scenario);
  if (const auto defaults = scenario.find("defaults"))
    result.set("defaults", with_objects(*defaults));
  if (const auto runs = scenario.find("runs"); runs && runs->is_array()) {
    Json list = Json::array();
    for (const JsonReader& run : runs->elements()) list.push(with_objects(run));
    result.set("runs", list);
  }
  return JsonReader::from_text(result.text(), scenario.file(), scenario.path());
}

}  // namespace stratagem::study

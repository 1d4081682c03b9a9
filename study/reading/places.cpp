// Looks keys up among those of a run and of its objects.
#include "study/reading/places.hpp"

#include <algorithm>

#include "base/malformed_input.hpp"
#include "base/nearest.hpp"
#include "model/zoo/all.hpp"
#include "study/reading/changes.hpp"

namespace stratagem::study {
namespace {

using Keys = std::vector<std::string>;

const Keys of_scenario = {"$schema", "question",  "baseline", "defaults",
                          "search",  "workflows", "runs"};
const Keys of_run = {"name", "model", "cluster",  "profile", "stack",   "training", "strategy",
                     "plan", "group", "baseline", "assumed", "what_if", "measured", "expect"};

/// Those of all families; some are a strategy's, too.
Keys of_models() {
  Keys all;
  for (const model::Family& family : model::families())
    for (const OptionText& option : family.options) all.push_back(option.key);
  return all;
}

[[noreturn]] void misplaced(const JsonReader& where, const std::string& key,
                            const std::string& home) {
  throw MalformedInput(where.file(), where.at(key).path(), "this key in \"" + home + "\"",
                       "it in " + (where.path().empty() ? "the scenario" : where.path()));
}

bool is_among(const Keys& known, const std::string& key) {
  return std::ranges::find(known, key) != known.end();
}

void check_keys(const JsonReader& object, const Keys& known) {
  for (const std::string& key : object.keys()) {
    if (is_among(known, key)) continue;
    if (is_among(of_run, key))
      throw MalformedInput(object.file(), object.at(key).path(),
                           "this key in \"defaults\", or in one of \"runs\"", "it in the scenario");
    if (const std::string home = object_of(key); !home.empty()) misplaced(object, key, home);
    std::string expected = "one of the known keys" + did_you_mean(key, known);
    if (meant(key, known).empty())
      for (const std::string& one : known)
        expected += (&one == known.data() ? " \"" : ", \"") + one + "\"";
    throw MalformedInput(object.file(), object.at(key).path(), expected, "an unknown key");
  }
}

/// Other keys are for whoever reads the object to refuse, who names the nearest.
void check_settings(const JsonReader& settings) {
  if (!settings.is_object()) return;
  check_keys(settings, of_run);
  for (const std::string name : {"model", "strategy", "training"}) {
    const auto object = settings.find(name);
    if (!object || !object->is_object()) continue;
    const Keys own = name == "model" ? of_models() : Keys{};
    for (const std::string& key : object->keys()) {
      const std::string home = object_of(key);
      const bool elsewhere = !home.empty() && home != name;
      if (elsewhere && !is_among(own, key)) misplaced(*object, key, home);
      if (key == "plan" && !is_among(own, key))
        throw MalformedInput(object->file(), object->at(key).path(),
                             "this key in the run, in place of a strategy", "it in " + name);
    }
  }
}

}  // namespace

void check_places(const JsonReader& scenario) {
  if (!scenario.is_object()) return;
  const JsonReader copy = JsonReader::from_text(scenario.dump(), scenario.file());
  if (copy.has("schema"))
    throw MalformedInput(scenario.file(), "", "a scenario", "an answer of `stratagem`");
  check_keys(copy, of_scenario);
  if (const auto defaults = copy.find("defaults")) check_settings(*defaults);
  if (const auto runs = copy.find("runs"); runs && runs->is_array())
    for (const JsonReader& run : runs->elements()) check_settings(run);
}

}  // namespace stratagem::study

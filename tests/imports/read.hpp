// What an importer makes of a text, members of JSON to compare, and which settings act.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/input_error.hpp"
#include "base/json_reader.hpp"
#include "imports/format.hpp"
#include "imports/scenario.hpp"
#include "tests/catch.hpp"

namespace stratagem::imports {

/// By the format that knows the text.
inline Settings read(const std::string& text) {
  const auto format =
      std::ranges::find_if(formats(), [&](const Format& one) { return one.is(text); });
  REQUIRE(format != formats().end());
  return format->read(text, "test");
}

/// Its members, in whatever order.
inline std::map<std::string, std::string> members(const JsonReader& object) {
  std::map<std::string, std::string> all;
  for (const std::string& key : object.keys()) all[key] = object.at(key).dump();
  return all;
}

inline const std::string folder = "tests/imports/data/";

/// The run, as JSON, of files and settings "tensor=2".
inline JsonReader run_of(const std::vector<std::string>& texts,
                         const std::vector<std::string>& set = {}) {
  std::vector<Settings> files;
  for (const std::string& text : texts) files.push_back(read(text));
  std::vector<study::KeyValues> changes;
  for (const std::string& one : set) changes.push_back(study::read_change(one, false, "--set"));
  const Imported imported = scenario_of(merged(files), changes, "test");
  return JsonReader::from_text(imported.scenario.text(), "scenario").at("runs").elements().front();
}

inline void check(const JsonReader& run, const std::string& object, const std::string& expected) {
  CHECK(members(run.at(object)) == members(JsonReader::from_text(expected, "expected")));
}

/// What the settings' lists name.
inline std::set<std::string> told(const Settings& settings) {
  std::set<std::string> all(settings.no_matter.begin(), settings.no_matter.end());
  for (const Note& note : settings.left_out) all.insert(note.what);
  return all;
}

/// All that settings say but for what does not matter.
inline std::string answer(const Settings& one) {
  Json all = Json::object().set("model", one.model).set("training", one.training);
  all.set("strategy", one.strategy).set("cluster", one.cluster);
  std::string text = all.text() + std::to_string(one.accumulation.value_or(0));
  for (const std::string& stack : one.stacks) text += " " + stack;
  for (const Note& note : one.left_out) text += "\n" + note.what + note.why;
  for (const Note& note : one.assumed) text += "\n" + note.what + note.why;
  return text;
}

/// Is a setting in the run? Then another value, or none, is another run.
inline bool acts(const Settings& before, const std::vector<std::string>& variants) {
  return std::ranges::any_of(variants, [&](const std::string& text) {
    try {
      return answer(read(text)) != answer(before);
    } catch (const InputError&) {
      return true;  // refused
    }
  });
}

}  // namespace stratagem::imports

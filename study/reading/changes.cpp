// Finds the object of a key, and combines values.
#include "study/reading/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <set>

#include "base/input_error.hpp"
#include "base/json_copy.hpp"
#include "base/json_text.hpp"
#include "base/nearest.hpp"
#include "model/zoo/all.hpp"
#include "strategies/parallel/all.hpp"
#include "study/reading/named_presets.hpp"
#include "topology/presets.hpp"

namespace stratagem::study {
namespace {

/// A key that may come first.
struct Known {
  std::string object;  ///< that has it: "strategy"; "" is the run itself
  bool holds = false;  ///< an object, never a plain value
  std::string member;  ///< of what it holds, which has to be there; "" is none in particular
};

Known known_of(const std::string& object, const OptionText& option) {
  const bool holds = JsonReader::from_text(option.schema.text(), "").has("properties");
  const bool leads = holds && !option.keys.empty() && option.keys.front().required();
  return {object, holds, leads ? option.keys.front().key : ""};
}

std::map<std::string, Known> known_keys() {
  std::map<std::string, Known> all;
  for (const model::Family& family : model::families()) {
    all["family"] = {"model"};
    for (const OptionText& option : family.options) all[option.key] = known_of("model", option);
  }
  for (const OptionText& option : strategies::option_texts())
    all[option.key] = known_of("strategy", option);
  for (const char* key : {"global_batch", "micro_batch", "precision", "optimizer"})
    all[key] = {"training"};
  for (const char* key :
       {"gpus", "node", "nodes", "host_memory", "price_per_gpu_hour", "ranks_per_node"})
    all[key] = {"cluster"};
  for (const char* key : {"profile", "stack", "plan"}) all[key] = {};
  for (const char* key : {"model", "cluster", "training", "strategy", "what_if"})
    all[key] = {"", true};
  return all;
}

std::string dotted(const std::vector<std::string>& path) {
  return fmt::format("{}", fmt::join(path, "."));
}

std::vector<std::string> path_of(const std::string& key, const std::string& from) {
  std::vector<std::string> path;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    path.push_back(key.substr(begin, end - begin));
    begin = end + 1;
  }
  if (std::ranges::count(path, "") > 0)
    throw InputError(from, "", "keys parted by single dots, such as cluster.preset=dgx-2", key);
  if (key == "preset") throw InputError(from, "", "model.preset or cluster.preset", key);
  const std::map<std::string, Known> known = known_keys();
  const auto first = known.find(path.front());
  if (first == known.end()) {
    std::vector<std::string> keys;
    for (const auto& [name, of] : known) keys.push_back(name);
    const std::string near = did_you_mean(path.front(), keys);
    throw InputError(
        from, "",
        near.empty() ? "a key of a run, such as tensor=2 or cluster.preset=dgx-2" : "a key" + near,
        key);
  }
  if (!first->second.object.empty()) path.insert(path.begin(), first->second.object);
  return path;
}

bool is_plain(const std::string& value) {
  return value != "null" && !value.starts_with('{') && !value.starts_with('[');
}

/// `model=llama-3-8b` names a preset, as it does in a scenario.
void name_presets(std::vector<std::string>& path, const std::vector<std::string>& values) {
  const bool named = path.size() == 1 && (path.front() == "model" || path.front() == "cluster");
  if (named && std::ranges::all_of(values, is_plain)) path.emplace_back("preset");
}

/// A plain value of a key that holds an object belongs to one of its members.
void check_holds(const std::vector<std::string>& path, const std::string& value,
                 const std::string& from) {
  const auto known = known_keys();
  const auto key = known.find(path.back());
  const bool is_it =
      key != known.end() &&
      (key->second.object.empty() ? path.size() == 1
                                  : path == std::vector{key->second.object, key->first});
  if (!is_it || !key->second.holds || !is_plain(value)) return;
  const std::string& member = key->second.member;
  const std::string written = dotted(path) + "." + (member.empty() ? "KEY=" : member + "=") + value;
  throw InputError(from, "", written, key->first + "=" + value);
}

/// Parts of a list outside of brackets, braces and quotes.
std::vector<std::string> parted(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (const char one : text) {
    if (one == '"') quoted = !quoted;
    if (!quoted && (one == '[' || one == '{')) ++depth;
    if (!quoted && (one == ']' || one == '}')) --depth;
    if (one == ',' && depth == 0 && !quoted) {
      parts.emplace_back();
    } else {
      parts.back() += one;
    }
  }
  return parts;
}

/// "1..8", "1-8" and "1:8" are no lists: which of the numbers between?
void check_no_range(const std::string& key, const std::string& value, const std::string& from) {
  std::smatch ends;
  static const std::regex range(R"((\d{1,9})(\.\.|-|:)(\d{1,9}))");
  if (!std::regex_match(value, ends, range)) return;
  std::string list;
  const std::int64_t last = std::stoll(ends[3]);
  for (std::int64_t n = std::max<std::int64_t>(1, std::stoll(ends[1])); n <= last; n *= 2)
    list += (list.empty() ? "" : ",") + std::to_string(n);
  throw InputError(from, "", "each value, as in " + key + "=" + list, value);
}

/// JSON, or a word.
Json value_of(const std::string& text) {
  try {
    return copy_of(JsonReader::from_text(text, ""));
  } catch (const InputError&) {
    return text;
  }
}

/// A value as a name has it: without quotes.
std::string shown(const Json& value) {
  std::string text = value.text();
  std::erase(text, '"');
  return text;
}

Json at_path(const std::vector<std::string>& path, const Json& value) {
  Json result = value;
  for (auto key = path.rbegin(); key != path.rend(); ++key)
    result = Json::object().set(*key, std::move(result));
  return result;
}

/// Settings with others over them.
Json over(const Json& upper, const Json& lower) {
  return copy_of(
      JsonReader::from_text(upper.text(), "").over(JsonReader::from_text(lower.text(), "")));
}

/// A change to a preset replaces what the run says itself of the model: it brings all keys. Other
/// servers bring the profile of their GPU, unless a change says which.
Json settings_of(const KeyValues& change, const Json& value, bool brings_profile) {
  if (change.path == std::vector<std::string>{"cluster", "preset"}) {
    const auto known =
        std::ranges::find(topology::presets(), shown(value), &topology::Preset::name);
    if (known != topology::presets().end() && brings_profile)
      return at_path(change.path, value).set("profile", known->build(1).design().gpu);
  }
  if (change.path != std::vector<std::string>{"model", "preset"})
    return at_path(change.path, value);
  return at_path({"model"}, model_alone(shown(value)));
}

}  // namespace

std::string object_of(const std::string& key) {
  static const std::map<std::string, Known> known = known_keys();
  const auto found = known.find(key);
  return found == known.end() ? "" : found->second.object;
}

KeyValues read_change(const std::string& text, bool several, const std::string& from) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw InputError(from, "", several ? "KEY=VALUE,VALUE" : "KEY=VALUE", text);
  KeyValues change{
      .path = path_of(text.substr(0, equals), from), .values = {}, .option = from + " " + text};
  const std::string after = text.substr(equals + 1);
  const std::vector<std::string> values = several ? parted(after) : std::vector{after};
  name_presets(change.path, values);
  for (const std::string& value : values) {
    if (value.empty()) throw InputError(from, "", "a value between commas", text);
    check_holds(change.path, value, from);
    if (several) check_no_range(text.substr(0, equals), value, from);
    if (std::ranges::count(values, value) > 1)
      throw InputError(change.option, "", "each value once", value + " twice");
    change.values.push_back(value_of(value));
  }
  return change;
}

std::vector<Variant> variants(const std::vector<KeyValues>& changes) {
  std::vector<Variant> all(1);
  const bool brings_profile = std::ranges::find(changes, std::vector<std::string>{"profile"},
                                                &KeyValues::path) == changes.end();
  std::set<std::vector<std::string>> paths;
  for (const KeyValues& change : changes) {
    if (!paths.insert(change.path).second)
      throw InputError(change.option, "", "each key once", dotted(change.path) + " again");
    std::vector<Variant> more;
    for (const Variant& before : all) {
      for (const Json& value : change.values) {
        const std::string suffix =
            change.values.size() > 1 ? ", " + change.path.back() + " " + shown(value) : "";
        more.push_back({over(settings_of(change, value, brings_profile), before.settings),
                        before.suffix + suffix});
      }
    }
    all = std::move(more);
  }
  return all;
}

JsonReader varied(const JsonReader& run, const Variant& variant, const Variant& first,
                  const std::string& baseline) {
  Json settings = variant.settings;
  settings.set("name", run.at("name").text() + variant.suffix);
  const auto own = run.find("baseline");
  const std::string relative = own ? own->text() : baseline;
  if (!relative.empty()) settings.set("baseline", relative + first.suffix);
  return set_over(settings, run);
}

JsonReader set_over(const Json& settings, const JsonReader& below) {
  const JsonReader above = JsonReader::from_text(settings.text(), below.file(), below.path());
  return above.over(below).over(above);
}

bool change_predictions(const std::vector<KeyValues>& changes) {
  return std::ranges::any_of(changes, [](const KeyValues& one) { return one.path != price_path; });
}

std::vector<SetKey> set_keys(const std::vector<KeyValues>& changes) {
  std::vector<SetKey> all;
  for (const KeyValues& change : changes) {
    std::string path;
    for (const std::string& key : change.path) path = child_path(path, key);
    all.push_back({path, change.option});
  }
  return all;
}

std::string set_in_all(const std::vector<KeyValues>& changes) {
  std::string text;
  for (const KeyValues& change : changes) {
    if (change.values.size() > 1) continue;
    if (!text.empty()) text += ", ";
    text += dotted(change.path) + " " + shown(change.values.front());
  }
  return text;
}

}  // namespace stratagem::study

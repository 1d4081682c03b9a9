// Changes a key as its line says, and compares the answers.
#include "tests/scenarios/keys/line.hpp"

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/json_writer.hpp"

namespace stratagem::keys {
namespace {

constexpr double rounding = 1e-6;

ordered_json parsed(const std::string& file) {
  std::ifstream stream(file);
  INFO(file);
  REQUIRE(stream.good());
  return ordered_json::parse(stream);
}

/// What a line has besides answers.
const std::set<std::string> joining_words = {"in",    "at",      "with",      "from",   "to",
                                             "times", "because", "describes", "refused"};

void put(ordered_json& document, const std::string& pointer, const ordered_json& value) {
  const ordered_json::json_pointer place(pointer);
  if (value.is_null()) {
    if (document.contains(place)) document.at(place.parent_pointer()).erase(place.back());
  } else {
    document[place] = value;
  }
}

/// A number, or the number before a unit, so many times.
ordered_json times(const ordered_json& value, double factor) {
  if (value.is_number_integer() && factor == static_cast<int>(factor))
    return value.get<int>() * static_cast<int>(factor);
  if (value.is_number()) return value.get<double>() * factor;
  const auto text = value.get<std::string>();
  char* unit = nullptr;
  const double number = std::strtod(text.c_str(), &unit);
  return Json(number * factor).text() + unit;
}

/// "KEY = word": the word as it stands in a document.
ordered_json choice_of(const std::string& key) {
  const std::string word = key.substr(key.find(" = ") + 3);
  const ordered_json value = ordered_json::parse(word, nullptr, false);
  return value.is_discarded() ? ordered_json(word) : value;
}

double number_of(const ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.is_number() ? value.get<double>() : 0;
}

/// Does an answer move as expected: "up", "down", "changes", "stays", or "x2", exactly so many
/// times? Lists and objects do not: their last digits would do, so a line names a figure in them.
bool moves(const ordered_json& before, const ordered_json& after, const std::string& expected) {
  if (expected == "stays") return before == after;
  if (before.is_structured() || after.is_structured()) return false;
  if (before.is_string()) return expected == "changes" && before != after;
  const double a = number_of(before);
  const double b = number_of(after);
  const double least = rounding * std::abs(a);
  if (expected == "up") return b > a + least;
  if (expected == "down") return b < a - least;
  if (expected == "changes") return std::abs(b - a) > least || !after.is_number();
  REQUIRE(expected.starts_with("x"));
  return a > 0 && close(b, a * std::stod(expected.substr(1)), rounding);
}

/// Elements of a list change with the list.
std::string place_of(const ordered_json& says, const std::string& key) {
  if (says.contains("at")) return says.at("at").get<std::string>();
  const std::string place = key.substr(0, key.find(" = "));
  return place.ends_with("/*") ? place.substr(0, place.size() - 2) : place;
}

std::string shown(const ordered_json& value) {
  const std::string text = value.dump();
  return text.size() < 60 ? text : text.substr(0, 60) + "...";
}

/// Says of all constants that they are measured.
void know_all(ordered_json& document) {
  for (auto& member : document) {
    if (member.is_structured()) know_all(member);
  }
  if (document.is_object() && document.contains("provenance")) document["provenance"] = "measured";
}

std::string judged(const ordered_json& says, const Answers& before, const Answers& after) {
  if (!before.refused.empty()) return "refused before the change: " + before.refused;
  if (says.contains("refused")) {
    const auto why = says.at("refused").get<std::string>();
    if (after.refused.find(why) != std::string::npos) return "";
    return "expected a refusal with \"" + why + "\", found \"" + after.refused + "\"";
  }
  if (!after.refused.empty()) return "refused: " + after.refused;
  std::string wrong;
  int expected = 0;
  for (const auto& [name, direction] : says.items()) {
    if (joining_words.contains(name)) continue;
    ++expected;
    const ordered_json a = answer(before, name);
    const ordered_json b = answer(after, name);
    if (!moves(a, b, direction.get<std::string>()))
      wrong += name + ": expected " + direction.get<std::string>() + ", found " + shown(a) +
               " and then " + shown(b) + "; ";
  }
  return expected > 0 ? wrong : "the line expects nothing";
}

}  // namespace

std::vector<Line> read_lines(const std::string& file) {
  std::vector<Line> lines;
  const ordered_json table = parsed(file);
  for (const auto& [pattern, says] : table.items()) {
    if (says.is_object()) lines.push_back({pattern, says});
    if (!says.is_array()) continue;
    for (const ordered_json& one : says) lines.push_back({pattern, one});
  }
  REQUIRE_FALSE(lines.empty());
  return lines;
}

Worlds::Worlds(const std::string& file) : written_(parsed(file)) {}

std::vector<std::string> Worlds::names() const {
  std::vector<std::string> result;
  for (const auto& [name, unused] : written_.items()) result.push_back(name);
  return result;
}

ordered_json Worlds::world(const std::string& name) {
  if (const auto found = loaded_.find(name); found != loaded_.end()) return found->second;
  INFO("world " << name);
  REQUIRE(written_.contains(name));
  ordered_json own = written_.at(name);
  ordered_json world = ordered_json::object();
  if (own.contains("like")) {
    world = this->world(own.at("like").get<std::string>());
    own.erase("like");
    for (const auto& [key, part] : own.items()) {
      if (part.is_string()) world.erase(key);
    }
  }
  world.merge_patch(loaded(own));
  return loaded_[name] = world;
}

const Answers& Worlds::ask(const ordered_json& world) {
  const std::string text = world.dump();
  const auto found = asked_.find(text);
  return found != asked_.end() ? found->second : asked_[text] = oracle_.ask(world);
}

ordered_json Worlds::world_of(const ordered_json& says, const std::string& place) {
  ordered_json world = this->world(says.at("in").get<std::string>());
  if (says.contains("with")) {
    for (const auto& [pointer, value] : says.at("with").items()) put(world, pointer, value);
  }
  if (says.contains("from")) put(world, place, says.at("from"));
  return world;
}

std::string Worlds::judge_provenance(const Line& line, const std::string& key,
                                     const std::string& constant) {
  ordered_json world = world_of(line.says, place_of(line.says, key));
  for (const char* document : {"profile", "stack"}) know_all(world[document]);
  // A key with * stands where the line says.
  std::string place = place_of(line.says, key);
  for (auto more = std::ranges::count(key, '/') - std::ranges::count(constant, '/'); more > 0;
       --more)
    place.erase(place.rfind('/'));
  place += "/provenance";
  if (line.says.contains("refused")) return "";  // there is no such constant
  if (!world.contains(ordered_json::json_pointer(place))) return "no constant at " + constant;
  std::string wrong;
  for (const char* word : {"measured", "published", "fitted", "datasheet", "assumed"}) {
    put(world, place, word);
    const Answers& answers = ask(world);
    if (!answers.refused.empty()) return "refused: " + answers.refused;
    const ordered_json weakest = answer(answers, "provenance/weakest");
    if (weakest != word) wrong += std::string(word) + ": weakest is " + shown(weakest) + "; ";
  }
  return wrong;
}

std::string Worlds::judge(const Line& line, const std::string& key) {
  const ordered_json& says = line.says;
  const std::string place = place_of(says, key);
  if (!says.contains("at") && place.find('*') != std::string::npos)
    return "a key with * wants a place (\"at\")";
  const ordered_json before = world_of(says, place);
  ordered_json after = before;
  if (says.contains("times")) {
    const ordered_json::json_pointer pointer(place);
    if (!before.contains(pointer)) return "nothing to multiply at " + place;
    put(after, place, times(before.at(pointer), says.at("times").get<double>()));
  } else if (says.contains("to")) {
    put(after, place, says.at("to"));
  } else if (key.find(" = ") != std::string::npos) {
    put(after, place, choice_of(key));
  } else {
    return "nothing changes the key";
  }
  if (before == after) return "the change changes nothing at " + place;
  return judged(says, ask(before), ask(after));
}

}  // namespace stratagem::keys

// Every key acts: what a user may write in a scenario, profile, stack, node or plan moves an
// answer, in the direction that physics says, in a small world where it should matter.
// keys/README.md tells how the tables are made.
#include <fstream>
#include <iostream>
#include <set>

#include "tests/catch.hpp"
#include "tests/scenarios/keys/line.hpp"
#include "tests/scenarios/keys/schema_keys.hpp"

namespace stratagem::keys {
namespace {

const std::string tables = "tests/scenarios/keys/";

ordered_json schema_of(const std::string& document) {
  std::ifstream stream("scenarios/schema/" + document + ".schema.json");
  REQUIRE(stream.good());
  return ordered_json::parse(stream);
}

/// Keys of documents; those of a scenario's first run stand under "/run". What a search combines
/// has tests of its own (tests/search/space_test.cpp).
std::set<std::string> all_keys(const std::string& document) {
  if (document != "scenario" && document != "run")
    return leaf_keys(schema_of(document), "/" + document);
  std::set<std::string> found;
  for (const std::string& key : leaf_keys(schema_of("scenario"), "")) {
    const bool of_run = key.starts_with("/runs/*");
    const bool elsewhere = key.starts_with("/defaults/") || key.starts_with("/search/");
    if (elsewhere || of_run != (document == "run")) continue;
    found.insert(of_run ? "/run" + key.substr(7) : "/scenario" + key);
  }
  return found;
}

Worlds& worlds() {
  static Worlds all(tables + "worlds.json");
  return all;
}

/// The constant that a key belongs to: "/profile/launch" of "/profile/launch/value"; "" where it is
/// none's.
std::string constant_of(std::string key, const std::set<std::string>& keys) {
  while (key.rfind('/') != 0) {
    key.erase(key.rfind('/'));
    if (keys.contains(key + "/provenance = assumed")) return key;
  }
  return "";
}

/// Takes the words of a constant's provenance from those without a line, and tries them all.
void check_provenance(const Line& line, const std::string& key, const std::set<std::string>& keys,
                      std::set<std::string>& without_line) {
  const std::string constant = constant_of(key, keys);
  if (constant.empty() || !line.says.contains("in")) return;
  INFO(constant << "/provenance  " << line.says.dump());
  CHECK(worlds().judge_provenance(line, key, constant) == "");
  std::erase_if(without_line, [&](const std::string& other) {
    return other.starts_with(constant + "/provenance = ");
  });
}

void check_document(const std::string& document) {
  std::set<std::string> without_line = all_keys(document);
  const std::set<std::string> keys = without_line;
  for (const Line& line : read_lines(tables + document + ".json")) {
    int named = 0;
    for (const std::string& key : keys) {
      if (!names(line.pattern, key)) continue;
      ++named;
      without_line.erase(key);
      if (line.says.contains("describes")) continue;
      INFO(key << "  " << line.says.dump());
      CHECK(worlds().judge(line, key) == "");
      if (document == "profile" || document == "stack")
        check_provenance(line, key, keys, without_line);
    }
    INFO("a line without a key: " << line.pattern);
    CHECK(named > 0);
  }
  for (const std::string& key : without_line) {
    INFO("a key without a line: " << key);
    CHECK(false);
  }
}

/// The names under which frameworks state facts of operators.
std::set<std::string> names_of_operators() {
  const ordered_json schema = schema_of("stack");
  std::set<std::string> names;
  for (const ordered_json& name :
       schema.at(ordered_json::json_pointer("/definitions/rules/items/anyOf/0/properties/operator"))
           .at("enum"))
    names.insert(name.get<std::string>());
  return names;
}

/// The quoted words of a text.
std::vector<std::string> quoted(const std::string& text) {
  std::vector<std::string> parts{""};  // those between quotes are every other one
  for (const char c : text) {
    if (c == '"') parts.emplace_back();
    if (c != '"') parts.back() += c;
  }
  std::vector<std::string> words;
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) words.push_back(parts[i]);
  return words;
}

/// Which keys a reader knows at a place: it lists them where a key is like none of them. None where
/// it looks keys up in a table of words, which a line each shows to act.
std::vector<std::string> keys_of_reader(const ordered_json& world, const std::string& place) {
  ordered_json other = world;
  other[ordered_json::json_pointer(place)]["@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@"] = 1;
  const std::string error = worlds().oracle().read(other);
  INFO(place << ": " << error);
  REQUIRE(error.find("@@@") != std::string::npos);
  const std::size_t list = error.find("one of the known keys \"");
  if (list == std::string::npos) return {};
  return quoted(error.substr(list, error.find(", found", list) - list));
}

/// Does a reader take a key, whatever it says? Some ask for keys only to refuse them with advice.
bool takes(const ordered_json& world, const std::string& place, const std::string& key) {
  ordered_json other = world;
  ordered_json& value = other[ordered_json::json_pointer(place)][key];
  for (const ordered_json& any : {ordered_json(1), ordered_json(true), ordered_json("x"),
                                  ordered_json("1 B"), ordered_json("1 us")}) {
    value = any;
    if (worlds().oracle().read(other).empty()) return true;
  }
  return false;
}

/// Was an object with these keys, in the place of one with those known keys, looked at before?
bool seen(const std::string& document, const KnownKeys& object, const ordered_json& value) {
  static std::set<std::string> all;
  std::string shape = document + ordered_json(object.keys).dump();
  for (const auto& [key, unused] : value.items()) shape += key + ",";
  return !all.insert(shape).second;
}

void check_readers(const ordered_json& world, const std::string& document, const ordered_json& file,
                   const std::string& prefix) {
  if (file.is_null()) return;
  for (const KnownKeys& object : known_keys(schema_of(document), file)) {
    std::string place = prefix + object.pointer;
    if (document == "scenario" && place.starts_with("/scenario/runs/0"))
      place = "/run" + place.substr(16);
    if (seen(document, object, world.at(ordered_json::json_pointer(place)))) continue;
    for (const std::string& key : keys_of_reader(world, place)) {
      INFO(document << " " << object.pointer << " has " << key);
      CHECK((object.keys.contains(key) || !takes(world, place, key)));
    }
  }
}

}  // namespace

TEST_CASE("every key of a scenario but its runs acts") { check_document("scenario"); }
TEST_CASE("every key of a run acts") { check_document("run"); }
TEST_CASE("every key of a profile acts") { check_document("profile"); }
TEST_CASE("every key of a stack acts") { check_document("stack"); }
TEST_CASE("every key of a node acts") { check_document("node"); }
TEST_CASE("every key of a plan acts") { check_document("plan"); }

TEST_CASE("defaults have the keys of runs but the name, and say the same there") {
  const ordered_json schema = schema_of("scenario");
  ordered_json of_run = schema.at("properties").at("runs").at("items").at("properties");
  of_run.erase("name");
  CHECK(ordered_json(schema.at("properties").at("defaults").at("properties")) == of_run);
  for (const std::string& name : worlds().names()) {
    INFO(name);
    const ordered_json world = worlds().world(name);
    ordered_json moved = world;
    moved["scenario"]["defaults"] = world.at("run");
    moved["scenario"]["defaults"].erase("name");
    moved["run"] = {{"name", world.at("run").value("name", "")}};
    if (world.contains("node")) moved["run"]["cluster"] = ordered_json::object();
    if (world.at("scenario").contains("runs")) continue;  // they would take the defaults, too
    const Answers told = worlds().oracle().ask(world);
    const Answers by_default = worlds().oracle().ask(moved);
    CHECK(told.refused == "");
    CHECK(by_default.refused == "");
    CHECK(told.table == by_default.table);
  }
}

TEST_CASE("stacks can state facts of every operator that has kernels") {
  const std::set<std::string> known = names_of_operators();
  for (const std::string& name : worlds().names()) {
    for (const std::string& operator_name : worlds().oracle().operators(worlds().world(name))) {
      INFO(name << " has " << operator_name);
      CHECK(known.contains(operator_name));
    }
  }
}

TEST_CASE("readers ask for no key that the schemas lack") {
  for (const std::string& name : worlds().names()) {
    INFO(name);
    const ordered_json world = worlds().world(name);
    ordered_json scenario = world.at("scenario");
    scenario["runs"] = ordered_json::array({world.at("run")});
    check_readers(world, "scenario", scenario, "/scenario");
    for (const std::string document : {"profile", "stack", "node", "plan"})
      check_readers(world, document, world.value(document, ordered_json()), "/" + document);
  }
}

}  // namespace stratagem::keys

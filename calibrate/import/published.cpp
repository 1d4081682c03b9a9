// Goes through the records of every group and writes its scenario.
#include "calibrate/import/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/input_error.hpp"
#include "calibrate/import/record_run.hpp"

namespace stratagem::calibrate {
namespace {

using Run = std::vector<std::pair<std::string, Json>>;

/// A scenario with a line for every key of its runs.
std::string scenario_text(const JsonReader& group, const std::vector<Run>& runs) {
  std::string text = "{\n  \"$schema\": \"../schema/scenario.schema.json\",\n";
  text += "  \"question\": " + Json(group.at("question").text()).text() + ",\n";
  text += "  \"defaults\": " + Json::object().set("group", group.at("group").text()).text();
  text += ",\n  \"runs\": [";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    text += i == 0 ? "\n    {" : ",\n    {";
    for (std::size_t k = 0; k < runs[i].size(); ++k) {
      text += k == 0 ? " " : ",\n      ";
      text += Json(runs[i][k].first).text() + ": " + runs[i][k].second.text();
    }
    text += " }";
  }
  return text + "\n  ]\n}\n";
}

/// The rules of each group by its name.
std::map<std::string, JsonReader> by_name(const std::vector<JsonReader>& groups) {
  std::map<std::string, JsonReader> result;
  for (const JsonReader& group : groups) {
    const JsonReader name = group.at("group");
    if (!result.emplace(name.text(), group).second) name.fail("a group that has no rules yet");
  }
  return result;
}

}  // namespace

ImportedRecords import_records(const std::string& records_file, const std::string& rules_file) {
  const JsonReader rules = JsonReader::from_file(rules_file);
  static_cast<void>(rules.at("schema").between(1, 1));
  static_cast<void>(rules.find("note"));
  const std::vector<JsonReader> groups = rules.at("groups").elements();
  const std::map<std::string, JsonReader> known = by_name(groups);
  std::map<std::string, std::vector<Run>> runs;
  ImportedRecords imported;
  for (const JsonReader& record : JsonReader::from_file(records_file).at("records").elements()) {
    const JsonReader name = record.at("group");
    const auto group = known.find(name.text());
    if (group == known.end()) name.fail("a group that the rules name");
    const Ruling said = ruling(group->second.at("rules"), record);
    if (said.absent.empty()) {
      runs[name.text()].push_back(run_of(record, said));
    } else {
      imported.left_out.push_back({record.at("id").text(), name.text(), said.absent, said.reason});
    }
  }
  for (const JsonReader& group : groups) {
    const std::string name = group.at("group").text();
    const auto file = group.find("file");
    const auto question = group.find("question");
    if (!runs.contains(name)) continue;
    if (!file || !question) group.fail("the keys \"file\" and \"question\" for its scenarios");
    imported.scenarios.push_back({.file = file->text(),
                                  .group = name,
                                  .text = scenario_text(group, runs[name]),
                                  .runs = static_cast<int>(runs[name].size())});
  }
  rules.finish();
  return imported;
}

std::string describe(const ImportedRecords& imported) {
  std::map<std::string, int> out;
  std::vector<std::string> groups;
  const auto add = [&](const std::string& group) {
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  };
  for (const ImportedScenario& scenario : imported.scenarios) add(scenario.group);
  for (const LeftOut& record : imported.left_out) {
    add(record.group);
    ++out[record.group];
  }
  std::string text = "| group | runs | left out | scenario |\n|---|--:|--:|---|\n";
  int all = 0;
  for (const std::string& group : groups) {
    const auto scenario = std::ranges::find(imported.scenarios, group, &ImportedScenario::group);
    const bool there = scenario != imported.scenarios.end();
    all += there ? scenario->runs : 0;
    fmt::format_to(std::back_inserter(text), "| {} | {} | {} | {} |\n", group,
                   there ? scenario->runs : 0, out[group], there ? scenario->file : "");
  }
  fmt::format_to(std::back_inserter(text), "| all | {} | {} | |\n", all, imported.left_out.size());
  text += "\n| left out | absent | reason |\n|---|---|---|\n";
  for (const LeftOut& record : imported.left_out) {
    fmt::format_to(std::back_inserter(text), "| {} | {} | {} |\n", record.id, record.absent,
                   record.reason);
  }
  return text;
}

}  // namespace stratagem::calibrate

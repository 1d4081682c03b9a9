// The lines of the tables: in which world a key matters, how it is changed, and which answer then
// changes how.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/scenarios/keys/world.hpp"

namespace stratagem::keys {

/// One line of a table (README.md there says what it may have), for the keys that its pattern
/// names.
struct Line {
  std::string pattern;
  ordered_json says;
};

/// keys/run.json and the others: an object of lines by pattern; a list where a key has several.
std::vector<Line> read_lines(const std::string& file);

/// The worlds of keys/worlds.json, and their answers.
class Worlds {
 public:
  explicit Worlds(const std::string& file);
  ordered_json world(const std::string& name);
  [[nodiscard]] std::vector<std::string> names() const;
  /// What is wrong with a line for one of its keys; empty if the line holds.
  std::string judge(const Line& line, const std::string& key);
  /// The same for the provenance of a constant that a line for a key below it shows to act: if all
  /// other constants are measured, the report must name this one as the weakest.
  std::string judge_provenance(const Line& line, const std::string& key,
                               const std::string& constant);
  Oracle& oracle() { return oracle_; }

 private:
  ordered_json world_of(const ordered_json& says, const std::string& place);
  const Answers& ask(const ordered_json& world);
  ordered_json written_;
  std::map<std::string, ordered_json> loaded_;
  std::map<std::string, Answers> asked_;
  Oracle oracle_;
};

}  // namespace stratagem::keys

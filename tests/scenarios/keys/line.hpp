// Lines of the tables: where a key matters, how it is changed, and which answer moves where.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/scenarios/keys/world.hpp"

namespace stratagem::keys {

/// One line of a table (README.md there says what it may have), for the keys that its pattern names.
struct Line {
  std::string pattern;
  ordered_json says;
};

/// keys/run.json and the others: an object of lines by pattern; a list where a key has several.
std::vector<Line> read_lines(const std::string& file);

/// The worlds of keys/worlds.json, and what became of them.
class Worlds {
 public:
  explicit Worlds(const std::string& file);
  ordered_json world(const std::string& name);
  [[nodiscard]] std::vector<std::string> names() const;
  /// What is wrong with a line for one of its keys; empty where all is as it says.
  std::string judge(const Line& line, const std::string& key);
  /// The same of the provenance of a constant which a line for a key below it shows to act: where all others are
  /// measured, it is the weakest that the report names.
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

// Turns published records of whole runs into scenarios with `measured` values.
#pragma once

#include <string>
#include <vector>

namespace stratagem::calibrate {

/// A scenario file to write.
struct ImportedScenario {
  std::string file;   ///< its name, without a folder
  std::string group;  ///< of the records
  std::string text;
  int runs = 0;
};

/// A record that is no scenario.
struct LeftOut {
  std::string id;
  std::string group;
  std::string absent;  ///< "model", "framework", "facts" or "measurement"
  std::string reason;
};

struct ImportedRecords {
  std::vector<ImportedScenario> scenarios;  ///< in the order of the rules
  std::vector<LeftOut> left_out;            ///< in the order of the records
};

/// Turns records into scenarios by rules: which profile, servers and stack an experiment had, which
/// of the figures of memory its source printed and in which unit, and what is assumed where the
/// record is silent. docs/guide/measurements.md describes both formats. Throws InputError for a
/// record that no rule names, and for one that lacks what a scenario needs.
ImportedRecords import_records(const std::string& records_file, const std::string& rules_file);

/// How many records became scenarios, by group, and why the others did not, as Markdown.
std::string describe(const ImportedRecords& imported);

}  // namespace stratagem::calibrate

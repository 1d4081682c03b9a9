// A small world in which a key should matter: a run with all files that it names, and its answers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/small_scenario.hpp"

namespace stratagem::keys {

using nlohmann::ordered_json;

/// The files of one run as one document:
///   {"scenario": {...}, "run": {...}, "profile": {...}, "stack": {...}, "node": {...}, "plan":
///       {...}, "files": {...}}
/// A text in place of an object names a file of the repository's. `run` is the first of the
/// scenario's; its profile, stack, node and plan are those beside it unless it names others, which
/// "files" may have by name.
ordered_json loaded(ordered_json world);

/// The answers of the program for the run, as users read them.
struct Answers {
  ordered_json run;        ///< of the report: iteration_time_s, ..., and the workflows
  ordered_json failures;   ///< how many expectations do not hold
  std::string complaints;  ///< about them
  std::string table;
  std::string topology;  ///< as `stratagem topology show` describes the run's cluster
  std::string refused;   ///< the error in place of all of it
};

/// Writes a world's files into a folder of its own, and runs the program on them.
class Oracle {
 public:
  Answers ask(const ordered_json& world);
  /// Reads only; the error's text, empty where there is none.
  std::string read(const ordered_json& world);
  /// Names of the run's operators with kernels, but of steps, as stacks have them.
  std::vector<std::string> operators(const ordered_json& world);

 private:
  /// Returns the scenario's file.
  std::string write(const ordered_json& world) const;
  TemporaryFolder folder_;
};

/// A value of the answers: a pointer into the run's report without its first stroke, or the name of
/// one of the others. What is not there is 0.
ordered_json answer(const Answers& answers, const std::string& name);

}  // namespace stratagem::keys

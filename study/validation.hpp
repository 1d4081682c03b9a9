// Predictions against measurements, over many scenarios: errors by group and figure, and verdicts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/answers.hpp"
#include "study/results.hpp"

namespace stratagem::study {

/// The selection to validate; empty means everything.
struct Selection {
  std::string figure;  ///< one of figure_names
  std::string group;   ///< a part of a group's name
};

/// A scenario and its results; they point into each other, so it stays where it is.
struct Played {
  Scenario scenario;
  std::vector<Result> results;
};

/// The scenarios named, and those of the folders named, in the order of their names; a folder's
/// validate.json has limits (read_limits). Throws InputError for a folder without scenarios.
std::vector<std::string> scenario_files(const std::vector<std::string>& named);

/// Simulates, on so many threads, every run that has a measured figure of the selection, and every
/// run that such runs are compared with. A refused run has an outcome that says so; other runs have
/// one without metrics.
std::vector<Played> play(std::vector<Scenario> scenarios, const Selection& selection, int threads,
                         const Tell& tell = {});
/// The same of files.
std::vector<Played> play_files(const std::vector<std::string>& files, const Selection& selection,
                               int threads, const Tell& tell = {});

/// The heading that a run's figures are summed up under: its `group`, or its scenario's file
/// without folder and ".json".
std::string group_of(const Run& run);

/// A measured figure of a run that was predicted.
struct Compared {
  std::string group;
  const Result* result;
  const Figure* figure;
  /// Does it count in statistics? Not if it is from memory, and not if a scalar of the stack was
  /// fitted to it.
  bool judges;
};

/// Errors of one figure in one group, of the measurements that count.
struct ErrorStatistics {
  std::string group;
  std::string figure;
  int count = 0;
  double median = 0;         ///< of the absolute errors
  double mean_absolute = 0;  ///< of the absolute errors
  double mean = 0;           ///< of the errors with their signs
  double worst = 0;          ///< the error with the highest absolute value, with its sign
  std::string worst_run;
};

/// Does a run fit into the memory of its GPU: as predicted, and as measured?
struct Verdict {
  enum class Kind { right, wrong, undecided };
  std::string group;
  const Result* result;
  bool measured;   ///< it did fit
  Bytes needed;    ///< predicted
  Bytes capacity;  ///< of a GPU, or of a server's processors
  /// Undecided where the capacity lies within 10 % of the prediction.
  [[nodiscard]] Kind kind() const;
};

struct Validation {
  std::vector<Compared> compared;  ///< in the order of the scenarios
  std::vector<Verdict> verdicts;
  std::vector<const Result*> refused;       ///< those that were to be compared, or compared with
  std::vector<ErrorStatistics> statistics;  ///< groups in the order of the scenarios
  [[nodiscard]] std::vector<std::string> groups() const;
};

/// `played` must outlive the result. Expects the selection that it was played for.
Validation validate(const std::vector<Played>& played, const Selection& selection);

/// The file of a folder of scenarios that has their limits.
inline constexpr const char* limits_file = "validate.json";

/// The limits of a validation.
struct Limits {
  struct AtMost {
    std::string group;   ///< empty: every group
    std::string figure;  ///< empty: every figure
    double value;
  };
  std::vector<AtMost> medians;  ///< of the absolute errors of a figure
  /// How many verdicts of a group may be wrong ("fits"): none of a group without a limit. Nullopt:
  /// any.
  std::optional<std::vector<AtMost>> wrong_verdicts;
};

/// Reads a file of limits, a median for every figure of every group, and of wrong verdicts for
/// those that have some:
///   {"median_error": {"GROUP": {"peak_used": 0.08}}, "wrong_verdicts": {"GROUP": 1}}
Limits read_limits(const std::string& file);

/// The limits that apply to the selection.
Limits selected(const Limits& limits, const Selection& selection);

/// One line for every limit that does not hold, for every limit for which nothing was counted, and,
/// if there are limits of medians, for every figure of a group that has no limit.
std::vector<std::string> broken(const Validation& validation, const Limits& limits);

}  // namespace stratagem::study

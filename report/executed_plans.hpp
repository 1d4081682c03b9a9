// Simulated plans compared with their executions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"

namespace stratagem::report {

/// One run, executed once or several times.
struct ExecutedPlan {
  std::string run;
  Seconds predicted;           ///< for an iteration
  std::vector<Seconds> times;  ///< of all iterations that count, ascending
  std::vector<Seconds> held;  ///< those that the prediction is held to: at one pace, if it is known
  /// Of the fullest rank: live bytes at the peak, and the memory in which they lay.
  Bytes predicted_peak, peak, arena;
  /// Iterations during which a hypervisor took cores away: `set_aside` were replaced by further
  /// ones; `disturbed` are among `times`, because too few iterations were left alone.
  int set_aside = 0, disturbed = 0;
  bool agrees = true;    ///< did every execution that was compared compute what one device does?
  bool compared = true;  ///< was every execution compared with one device?
  std::string where;     ///< the type, and the host

  [[nodiscard]] Seconds measured() const;  ///< the median of times
  [[nodiscard]] Seconds at_pace() const;   ///< that of those at one pace
  [[nodiscard]] double error() const;      ///< of the prediction, relative to the latter
};

/// A plan that was executed, but has no predicted time.
struct UnpredictedPlan {
  ExecutedPlan plan;  ///< without anything predicted
  std::string because;
};

struct ExecutedPlans {
  std::vector<ExecutedPlan> plans;  ///< in the order in which they were simulated
  std::vector<UnpredictedPlan> unpredicted;
  std::vector<std::string> not_executed;  ///< runs that were simulated alone
  /// What the yardstick of kernels/core_speed.hpp took in the median iteration. Predictions and
  /// measurements are scaled to this pace, whole iterations with their collectives. None if a
  /// profile or an iteration has no pace, as on GPUs; then times stay as they are.
  std::optional<Seconds> pace;

  /// Of absolute errors. Expect plans.
  [[nodiscard]] double median_error() const;
  [[nodiscard]] double worst_error() const;
  /// Did every plan compute what one device computes, and hold the bytes that were predicted?
  [[nodiscard]] bool as_expected() const;
  /// Pairs of plans, the slower first, that differ by more than 10 % at one pace and were predicted
  /// in the opposite order, or as equal.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> in_wrong_order() const;
};

/// Is a file what `simulate --json` writes? Throws InputError if it is no JSON.
bool is_simulated(const std::string& file);

/// Reads what `simulate --json` and `execute --json` wrote. A run that simulate refused is compared
/// with nothing. Throws InputError for an execution of a run that was not simulated, for one whose
/// timing did not finish, and for two executions of a run in different types or on different hosts.
ExecutedPlans executed_plans(const std::string& simulated,
                             const std::vector<std::string>& executed);

/// A Markdown table, a line a plan, and below it the errors and what is in the wrong order.
std::string to_markdown(const ExecutedPlans& plans);
///   {schema, pace_s if it is known, plans: [{run, predicted_s, measured_s, at_pace_s, least_s,
///   most_s, iterations, set_aside, disturbed, error, peak_live_bytes, predicted_peak_live_bytes,
///   arena_bytes, compared_with_one_device, agrees if so}], median_error and worst_error if any,
///   in_wrong_order, not_executed, unpredicted: [{run, because, measured_s,
///   compared_with_one_device, agrees if so}]}
/// predicted_s is at pace_s, too.
Json to_json(const ExecutedPlans& plans);

}  // namespace stratagem::report

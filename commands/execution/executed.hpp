// The results of executing a run, beside its prediction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "commands/execution/device_choice.hpp"
#include "execute/agreement.hpp"
#include "execute/trial.hpp"
#include "program/program.hpp"
#include "sim/timeline.hpp"
#include "strategies/plan/plan.hpp"
#include "study/run.hpp"

namespace stratagem::commands {

/// A run, lowered as its plan says and for one device.
struct Lowered {
  const study::Run& run;
  strategies::Plan plan, alone;
  program::Program program, program_alone;
};

/// What came of a run; the same on all ranks.
struct Executed {
  bool checked = true;                          ///< is it to be compared with one device?
  std::optional<execute::Agreement> agreement;  ///< none before the check is over
  bool agrees = false;
  int steps = 0;                                    ///< iterations that are to count
  std::vector<execute::TimedIteration> iterations;  ///< those so far
  std::optional<execute::Trial> trial;  ///< none before all are over, or if none is to be timed
};

/// The prediction for a run, or the reason why there is no time to compare with the measurement.
struct Predicted {
  std::optional<Seconds> iteration;
  std::string why_not;
  std::vector<Bytes> peaks;  ///< by device, of live buffers; none where those are of other types
};

/// Simulates the run. If its profile lacks a constant for that, no time is predicted, and the peaks
/// are those of the program in the order in which its tasks ran, `measured` (if that was recorded).
Predicted predicted(const Lowered& lowered, const Unit& unit, const sim::Timeline& measured);

/// Some lines on stdout. Expects that the check is over, if there is one.
void print(std::FILE* to, const Lowered& lowered, const Executed& executed, const Unit& unit,
           const Predicted& expected);

/// The results so far; `expected` is empty before the end. If no time is predicted, `no_prediction`
/// says why. `iteration_times_s`, `iteration_paces_s` and `iteration_stolen_s` are those of
/// iterations that count, `disturbed_iterations` are the others.
Json to_json(const Lowered& lowered, const Executed& executed, const Unit& unit,
             const Predicted& expected);

}  // namespace stratagem::commands

// What came of executing a run, beside what is predicted of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "base/quantity.hpp"
#include "commands/unit.hpp"
#include "execute/agreement.hpp"
#include "execute/trial.hpp"
#include "search/scenario.hpp"
#include "strategies/plan.hpp"
#include "strategies/program.hpp"

namespace stratagem::commands {

/// A run, lowered as its plan says and for one device.
struct Lowered {
  const search::Run& run;
  strategies::Plan plan, alone;
  strategies::Program program, program_alone;
};

/// What came of a run; the same on all ranks.
struct Executed {
  std::optional<execute::Agreement> agreement;  ///< none before the check is over
  bool agrees = false;
  int steps = 0;                                    ///< iterations that are to count
  std::vector<execute::TimedIteration> iterations;  ///< those so far
  std::optional<execute::Trial> trial;  ///< none before all are over, or if none is to be timed
};

/// What is predicted of a run, or why nothing it says is to be held against what is measured.
struct Predicted {
  std::optional<Seconds> iteration;
  std::string why_not;
  std::vector<Bytes> peaks;  ///< by device, of live buffers; none where those are of other types
};

/// Simulates it. Where a profile lacks a constant for that, the plan runs without a prediction.
Predicted predicted(const Lowered& lowered, const Unit& unit);

/// Some lines on stdout. Expects that the check is over.
void print(std::FILE* to, const Lowered& lowered, const Executed& executed, const Unit& unit,
           const Predicted& expected);

/// As far as it has come; `expected` is empty before the end. Where no time is predicted in the end
/// `no_prediction` says why. `iteration_times_s`, `iteration_paces_s` and
/// `iteration_stolen_s` are of iterations that count, `disturbed_iterations` the others.
Json to_json(const Lowered& lowered, const Executed& executed, const Unit& unit,
             const Predicted& expected);

}  // namespace stratagem::commands

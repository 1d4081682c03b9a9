// What the runs of a scenario came to, relative to each other and beside what was measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/remedies.hpp"
#include "search/scenario.hpp"

namespace stratagem::search {

/// One figure of one run. Units: s, TFLOP/s, bytes, or plain ratios.
struct Figure {
  std::string name;                 ///< as Measured::name
  std::optional<double> predicted;  ///< none where the run was refused, or has no baseline
  std::optional<double> measured;
  bool gates = true;
  std::string provenance;  ///< as Measured::provenance
  std::string source;
  bool fitted = false;
  std::optional<int> device = {};  ///< of memory: as Measured::device

  /// A difference of fractions for efficiencies, and of 0 and 1 for "fits"; else relative to the
  /// measured value. Expects both values.
  [[nodiscard]] double error() const;
};

struct Result {
  const Run* run;
  Outcome outcome;
  std::vector<Figure> figures;
  /// Changes with which a run fits that does not: tried where they were asked for.
  std::optional<std::vector<Remedy>> remedies;
};

/// Results in the order of the scenario. `outcomes` are its runs'.
///   tflops_per_gpu      hardware FLOP/s of one GPU: published figures of that kind count recomputation (of
///                       fused attention they may count pairs of tokens that no kernel computes)
///   scaling_efficiency  model FLOP/s of one GPU, relative to the baseline's
///   speedup             samples per second, relative to the baseline's
///   peak_allocated, peak_reserved, peak_used  bytes on the fullest device, or that which was measured, see
///                       sim/device_memory.hpp
///   fits                1 where peak_used is at most the GPU's memory, else 0
/// Nothing is relative to a baseline that does not fit.
/// Throws InputError for a measured device that is not the first of those that are alike.
std::vector<Result> compare(const Scenario& scenario, std::vector<Outcome> outcomes);

/// One line for every expectation that a result does not meet; none of refused runs, of which nothing is
/// known.
std::vector<std::string> failures(const std::vector<Result>& results);

/// One line for every reason to refuse runs, which names them.
std::vector<std::string> refusals(const std::vector<const Result*>& results);
std::vector<std::string> refusals(const std::vector<Result>& results);

}  // namespace stratagem::search

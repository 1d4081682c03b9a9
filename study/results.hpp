// The results of the runs of a scenario, relative to each other and beside measurements.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "study/gains.hpp"
#include "study/remedies.hpp"
#include "study/scenario.hpp"
#include "study/simulate.hpp"

namespace stratagem::study {

/// Of a run on so many GPUs, whose iteration takes so long: what a billion tokens cost. None if
/// nobody says what a GPU costs.
std::optional<double> cost_of_billion_tokens(const Run& run, int gpus, Seconds iteration_time);

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

  /// Predicted minus measured, for efficiencies and for "fits" (0 or 1); else relative to the
  /// measured value. Expects both values.
  [[nodiscard]] double error() const;
};

struct Result {
  const Run* run;
  Outcome outcome;
  std::vector<Figure> figures;
  /// For a run that does not fit: changes with which it would. Searched only on request.
  std::optional<std::vector<Remedy>> remedies;
  /// For a run that fits. Simulated only on request.
  std::optional<std::vector<Gain>> gains;
};

/// Results in the order of the scenario. `outcomes` are its runs'.
///   tflops_per_gpu      hardware FLOP/s of one GPU: with recomputation, without pairs of tokens
///                       that fused attention skips
///   model_tflops_per_gpu  model FLOP/s of one GPU: without recomputation, with all pairs
///   scaling_efficiency  model FLOP/s of one GPU, relative to the baseline's
///   speedup             samples per second, relative to the baseline's
///   resident, peak_allocated, peak_reserved, peak_used  bytes on the fullest device, or on the one
///                       that was measured, see sim/device_memory.hpp
///   fits                1 where peak_used is at most the GPU's memory, else 0
/// No figure is relative to a baseline that does not fit. Throws InputError if a measured device is
/// not the first of its device class.
std::vector<Result> compare(const Scenario& scenario, std::vector<Outcome> outcomes);

/// One line for every expectation that a result does not meet. Refused runs are skipped, since they
/// have no result.
std::vector<std::string> failures(const std::vector<Result>& results);

/// One line for every reason for which runs were refused, with the names of the runs.
std::vector<std::string> refusals(const std::vector<const Result*>& results);
std::vector<std::string> refusals(const std::vector<Result>& results);

}  // namespace stratagem::study

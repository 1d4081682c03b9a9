// Simulates a run: its iterations, memory, and what the prediction rests on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "program/program.hpp"
#include "sim/device_memory.hpp"
#include "sim/host_memory.hpp"
#include "sim/metrics.hpp"
#include "sim/steady.hpp"
#include "sim/timeline.hpp"
#include "study/extrapolation.hpp"
#include "study/provenance.hpp"
#include "study/run.hpp"

namespace stratagem::study {

/// The outcome of a run. A run that is out of memory has metrics as if it had fitted, unless
/// `memory_first` left out its simulation. A run that was refused, or that nobody asked for, has
/// none.
struct Outcome {
  enum class Status { ok, out_of_memory, refused, not_asked };
  Status status = Status::ok;
  std::string reason;
  int gpus = 0;
  std::optional<sim::Metrics> metrics;
  Flops model_flops;                       ///< of one iteration, as model/graph.hpp counts them
  sim::MemoryFigures memory;               ///< where there are metrics
  std::vector<sim::DeviceMemory> devices;  ///< distinct ones
  std::vector<sim::HostMemory> hosts;      ///< of servers that hold something; distinct ones
  std::vector<sim::HostMemory> drives;     ///< of servers whose drives hold something
  Weakest weakest;                         ///< what the prediction rests on
  Extrapolated extrapolated;               ///< how much of it is beyond what was measured

  /// The bytes that a GPU and a server lack: 0 if their memory suffices, or if the server's memory
  /// is not known.
  Bytes gpu_shortfall;
  Bytes host_shortfall;
  Bytes drives_shortfall;
  /// For a run that fits: descriptions of the memories that have less than 5 % left; empty if there
  /// are none.
  std::string tight;

  /// FLOP/s of one GPU: of the model, and of its kernels. Expect metrics.
  [[nodiscard]] FlopsPerSecond model_rate() const;
  [[nodiscard]] FlopsPerSecond hardware_rate() const;
};

struct SimulateOptions {
  bool folded = true;
  sim::Repeats repeats = sim::Repeats::left_out;
  /// A run of which a lower bound of its memory does not fit is not simulated: it has no metrics,
  /// and its memory is the bound.
  bool memory_first = false;
  /// Nor is a run simulated that surely takes longer: then its status is `not_asked`, and
  /// Simulated::at_least says how long.
  std::optional<Seconds> no_longer_than = {};
};

/// A run, simulated. Its program and timeline are kept for traces, which want all turns
/// (Repeats::simulated).
struct Simulated {
  program::Program program;
  sim::Timeline timeline;
  Outcome outcome;
  Seconds at_least;  ///< an iteration, of a run that was not simulated since that is too long
};
/// Throws InputError that names the scenario's file and the run, if the run is refused: if its
/// settings cannot go together, or if the strategy cannot be applied to the model.
Simulated simulate(const Run& run, const SimulateOptions& options);
/// The same, but for a refused run the outcome says so, and its program and timeline are empty.
Simulated simulate_or_refuse(const Run& run, const SimulateOptions& options);

}  // namespace stratagem::study

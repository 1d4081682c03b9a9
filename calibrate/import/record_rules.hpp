// Rules that turn a published record into a run, and their result for one record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"

namespace stratagem::calibrate {

/// The figure of a scenario's `measured` that a source printed as its memory.
struct MemoryFigure {
  std::string name;     ///< "peak_used"
  std::string unit;     ///< "GB" or "GiB": what the source means by its unit
  bool fitted = false;  ///< facts of the run were chosen with it in view: shown, not counted
  std::optional<int> device = {};  ///< on which it was measured; none: on the fullest
};

/// The figure of a record that says how fast it ran.
struct Throughput {
  /// "tflops_per_gpu", "samples_per_s", "samples_per_s_per_gpu" or "tokens_per_s_per_gpu".
  std::string figure;
  bool of_model = false;  ///< TFLOP/s without recomputation, of all pairs of tokens; else with it
  bool fitted = false;    ///< a scalar of the stack was fitted to it: shown, not counted
};

/// All that the rules say about one record; later rules go before earlier ones.
struct Ruling {
  std::optional<JsonReader> facts;  ///< of the record, in place of its own
  std::optional<JsonReader> run;    ///< settings of the run, in place of those that facts give
  std::optional<MemoryFigure> memory;
  /// The figure of a record that says how fast it ran, where it has no time of an iteration.
  std::optional<Throughput> throughput;
  /// Samples are padded by the framework to a multiple of this, times the tensor ranks.
  std::int64_t vocabulary_multiple = 1;
  /// How the framework divides layers among stages: "layers" equally, as far as they go, the last
  /// stage having what is left; "ends" likewise, embedding and head counting as a layer each.
  std::string stages = "layers";
  std::vector<std::string> assumed;
  std::string absent;  ///< what the program lacks for this record, with its reason; empty: nothing
  std::string reason;
};

/// What the rules of a group say about a record of it.
Ruling ruling(const JsonReader& group_rules, const JsonReader& record);

}  // namespace stratagem::calibrate

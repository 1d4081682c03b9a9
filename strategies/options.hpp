// The "strategy" object of a scenario: degrees of parallelism and the options of each strategy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/quantity.hpp"

namespace stratagem::strategies {

struct Ends;
struct Schedule;

struct Options {
  int tensor = 1;                 ///< tensor-parallel degree
  int pipeline = 1;               ///< stages
  int data = 1;                   ///< data-parallel degree
  std::string schedule = "1f1b";  ///< order of the cells of all stages
  int chunks = 0;                 ///< stages on every pipeline rank; 0: as many as the schedule has
  std::vector<int> layers_per_stage;  ///< empty: equally many
  /// The pipeline rank on which the first and the last segment stand apart from the stages,
  /// `all_ranks`, or nullopt: in the first and the last stage.
  std::optional<int> embedding;
  std::optional<int> head;
  static constexpr int all_ranks = -1;
  std::string recompute = "none";  ///< "none" | "full"
  bool overlap_gradients = false;
  std::optional<Bytes> bucket;  ///< of gradient reductions; nullopt: one for all

  /// Stages on every pipeline rank under a schedule.
  [[nodiscard]] int chunks_of(const Schedule& schedule) const;
  /// The same two choices as lists of ranks.
  [[nodiscard]] Ends ends(const Schedule& schedule) const;
  /// Consecutive devices are tensor ranks, then data ranks, then stages.
  [[nodiscard]] int devices() const { return tensor * pipeline * data; }
};

/// Reads and checks a strategy object; throws InputError.
Options read_options(const JsonReader& reader);

}  // namespace stratagem::strategies

// The "strategy" object of a scenario: degrees of parallelism and the options of each strategy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.hpp"
#include "base/quantity.hpp"

namespace stratagem::strategies {

struct Schedule;

/// Parts of a layer's attention and of its MLP on every device, and how many layers are divided.
struct CoShard {
  int attention = 1;
  int mlp = 1;
  int layers = 0;  ///< the first ones; 0: all
};

struct Options {
  int tensor = 1;                 ///< tensor-parallel degree
  int pipeline = 1;               ///< stages
  int data = 1;                   ///< data-parallel degree
  std::string schedule = "1f1b";  ///< order of the cells of all stages
  int chunks = 0;                 ///< stages on every pipeline rank; 0: as many as the schedule has
  std::vector<int> layers_per_stage;  ///< empty: equally many
  std::string recompute = "none";     ///< "none" | "selective" | "full"
  CoShard coshard;
  bool overlap_gradients = false;
  std::optional<Bytes> bucket;  ///< of gradient reductions; nullopt: one for all

  /// Stages on every pipeline rank under a schedule.
  [[nodiscard]] int chunks_of(const Schedule& schedule) const;
  /// Consecutive devices are tensor ranks, then data ranks, then stages.
  [[nodiscard]] int devices() const { return tensor * pipeline * data; }
};

/// Reads and checks a strategy object; throws InputError.
Options read_options(const JsonReader& reader);

}  // namespace stratagem::strategies

// The "strategy" object of a scenario: degrees of parallelism and the options of each strategy.
#pragma once

#include <optional>
#include <string>

#include "base/json_reader.hpp"
#include "base/quantity.hpp"
#include "strategies/operators.hpp"

namespace stratagem::strategies {

struct Options {
  int tensor = 1;                  ///< tensor-parallel degree
  int context = 1;                 ///< ranks that divide the tokens of every sequence
  int dap = 1;                     ///< ranks of dynamic axial parallelism
  int pipeline = 1;                ///< stages
  int data = 1;                    ///< data-parallel degree
  bool sequence_parallel = false;  ///< tensor ranks divide the tokens where they do not divide more
  NamedDimensions operators;       ///< what single operators divide over the tensor ranks
  int expert = 1;                  ///< consecutive data ranks that divide the experts among them
  std::string schedule = "1f1b";   ///< order of the cells of a stage
  std::string recompute = "none";  ///< "none" | "full"
  bool overlap_gradients = false;
  std::optional<Bytes> bucket;  ///< of gradient reductions; nullopt: one for all

  /// Consecutive devices are tensor ranks, then context, axial and data ranks, then stages.
  [[nodiscard]] int devices() const { return data_stride() * data * pipeline; }
  [[nodiscard]] int data_stride() const { return tensor * context * dap; }
};

/// Reads and checks a strategy object; throws InputError.
Options read_options(const JsonReader& reader);

}  // namespace stratagem::strategies

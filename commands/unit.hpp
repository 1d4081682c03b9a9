// What a rank of `execute` computes with: the processor, or one of the GPUs here.
#pragma once

#include <string>

#include "commands/arguments.hpp"
#include "execute/operators/application.hpp"
#include "execute/placement.hpp"

namespace stratagem::commands {

struct Unit {
  execute::Backend backend = execute::Backend::cpu;
  std::string precision = "fp32";
  int device = 0;    ///< its number among the GPUs here
  int devices = 0;   ///< GPUs here
  std::string name;  ///< of the GPU; "" for the processor
  std::string id;    ///< of the GPU, the same in all processes

  [[nodiscard]] bool is_gpu() const { return backend == execute::Backend::cuda; }
  /// "fp16 on NVIDIA H100", or "fp64" of a processor.
  [[nodiscard]] std::string text() const { return precision + (is_gpu() ? " on " + name : ""); }
};

/// Throws UsageError for a --backend or --precision that there is not, and for two that do not go
/// together.
void check_unit(const Arguments& asked);

/// Of a rank, by its number among those of this server: GPUs are taken in turns. Throws UsageError
/// where there is no GPU, or one without the type.
Unit unit_of(const Arguments& asked, int rank_on_server);

/// Bytes of elements there.
execute::ElementSizes sizes_of(const Unit& unit);

}  // namespace stratagem::commands

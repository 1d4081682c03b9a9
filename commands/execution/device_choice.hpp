// Chooses what a rank of `execute` computes with: the processor, or one of the GPUs here.
#pragma once

#include <string>

#include "commands/arguments.hpp"
#include "execute/buffer_packing.hpp"
#include "execute/operators/application.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::commands {

struct Unit {
  execute::Backend backend = execute::Backend::cpu;
  std::string precision = "fp32";
  int device = 0;    ///< its number among the GPUs here
  int devices = 0;   ///< GPUs here
  std::string name;  ///< of the GPU; "" for the processor
  std::string id;    ///< of the GPU, the same in all processes
  std::string nccl;  ///< "NCCL 2.28.9", which moves what GPUs reduce and gather; "": the host does

  [[nodiscard]] bool is_gpu() const { return backend == execute::Backend::cuda; }
  /// "fp16 on NVIDIA H100, collectives by NCCL 2.28.9", or "fp64" of a processor.
  [[nodiscard]] std::string text() const {
    return precision + (is_gpu() ? " on " + name : "") +
           (nccl.empty() ? "" : ", collectives by " + nccl);
  }
};

/// Throws UsageError for a --backend or --precision that there is not, and for two that do not go
/// together.
void check_unit(const Arguments& asked);

/// Of a rank, by its number among those of this server: GPUs are taken in turns. Throws UsageError
/// where there is no GPU, or one without the type.
Unit unit_of(const Arguments& asked, int rank_on_server);

/// "NCCL 2.28.9" where it is to move the messages of collectives: where every rank has a GPU to
/// itself and finds the library, and nobody asked for the host; else "". All ranks call it alike.
/// Throws InputError where it was asked for and cannot be.
std::string collectives_of(const Arguments& asked, const Unit& unit, kernels::Communicator& ranks);

/// Bytes of elements there.
execute::ElementSizes sizes_of(const Unit& unit);

}  // namespace stratagem::commands

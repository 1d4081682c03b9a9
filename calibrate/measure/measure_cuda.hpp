// `calibrate measure --backend cuda`: times GPUs' kernels, and what GPUs take to communicate, and
// writes what it found as it goes.
#pragma once

#include <functional>
#include <string>

#include "calibrate/measure/measure.hpp"
#include "kernels/world.hpp"

namespace stratagem::calibrate {

struct CudaAssignment {
  std::string file;
  std::string datasheet;  ///< whose rates shares are taken of; "": measured ones
  Sweep sweep = Sweep::full;
  std::string only;     ///< experiments whose names begin so; "" for all
  std::string cluster;  ///< preset of the servers, for several ranks
};

/// Measures a GPU for each rank in fp16, bf16 where it has it, and fp32, all at once; the slowest
/// rank's median counts. `file` gets products, kernels that move memory, fused attention and the gap
/// between kernels, for `calibrate fit`; beside it NAME.more.json gets what no fit reads: copies to and
/// from the host, the host's time for a launch. Of several ranks `file` gets their collectives
/// over NCCL, too: gpu_collectives.hpp. Shares are taken of the rates of the datasheet, or of those
/// of a large product and a large sum. Both files are written anew after every experiment, by rank
/// 0; a killed run begins again.
///
/// All ranks call it alike. Throws InputError on one rank, and AnotherRankFailed on the others, for
/// files that cannot be read or written, ranks that are not alike or have no GPU each, a cluster
/// that is none, and if no experiment begins with `only`; DeviceError for a GPU that fails, or where
/// several ranks have no NCCL; CommunicationError for ranks that are lost. Returns how many
/// experiments were run.
std::size_t measure_cuda(const CudaAssignment& assignment, kernels::World& world,
                         const std::function<void(const Progress&)>& tell);

}  // namespace stratagem::calibrate

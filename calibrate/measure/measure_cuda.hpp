// `calibrate measure --backend cuda`: times the kernels and collectives of GPUs, and writes results
// as it goes.
#pragma once

#include <functional>
#include <string>

#include "calibrate/measure/measure.hpp"
#include "kernels/ranks/world.hpp"

namespace stratagem::calibrate {

struct CudaAssignment {
  std::string file;
  std::string datasheet;  ///< whose rates shares are taken of; "": measured ones
  Sweep sweep = Sweep::full;
  std::string only;     ///< experiments whose names begin so; "" for all
  std::string cluster;  ///< preset of the servers, for several ranks
};

/// Measures one GPU per rank, all at once, in fp16, bf16 if the GPU has it, and fp32; the slowest
/// rank's median counts. `file` gets products, kernels that move memory, fused attention and the
/// gap between kernels, for `calibrate fit`. With several ranks it also gets collectives over NCCL:
/// gpu_collectives.hpp. NAME.more.json beside it gets what no fit reads: copies to and from the
/// host, and the host's time for a launch. Shares are relative to the rates of the datasheet, or to
/// those of a large product and a large sum. Rank 0 writes both files anew after every experiment;
/// a killed run begins again.
///
/// All ranks call it alike. Throws InputError on one rank, and AnotherRankFailed on the others, for
/// files that cannot be read or written, ranks that are not alike or have no GPU each, a cluster
/// that is none, and if no experiment begins with `only`; DeviceError for a GPU that fails, or
/// where several ranks have no NCCL; CommunicationError for ranks that are lost. Returns how many
/// experiments were run.
std::size_t measure_cuda(const CudaAssignment& assignment, kernels::World& world,
                         const std::function<void(const Progress&)>& tell);

}  // namespace stratagem::calibrate

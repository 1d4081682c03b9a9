// What is known of a GPU by its generation: for importers, whose files do not say it.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"
#include "topology/cluster.hpp"

namespace stratagem::topology::importers {

/// Figures of GPUs and of the servers that they came in.
struct GpuGeneration {
  std::string name;            ///< how profiles of it begin: "a100"
  int compute_capability = 0;  ///< ten times CUDA's number
  int nvlinks = 0;             ///< of one GPU
  BytesPerSecond nvlink;       ///< one of them, one direction
  BytesPerSecond pcie_x16;
  BytesPerSecond sockets;  ///< between two sockets, one direction
};

/// All that we know.
const std::vector<GpuGeneration>& gpu_generations();

/// That of a profile's name, "a100-sxm4-80gb"; nullptr for none that we know.
const GpuGeneration* generation_of(const std::string& gpu);

/// One NVLink in one direction by compute capability, 0 where it is not known.
BytesPerSecond nvlink_of(int compute_capability);

}  // namespace stratagem::topology::importers

// Which GPU each of several ranks has to itself.
#pragma once

#include <string>
#include <vector>

#include "kernels/ranks/communicator.hpp"

namespace stratagem::kernels {

/// What one rank sees.
struct VisibleGpus {
  std::string host;
  std::vector<std::string> ids;  ///< Device::id, by Device::index
};

/// That of every rank. All ranks call it alike.
std::vector<VisibleGpus> visible_gpus(Communicator& ranks);

/// Device::index of each rank's own GPU: on every host ranks take, one after the other, the first
/// that they see and nobody before them has taken. That serves whether ranks see all GPUs of their
/// host or, as launchers may have it, one each. Throws InputError, naming the rank, where one finds
/// none left: NCCL wants a GPU for every rank, and two on one would take turns.
std::vector<int> gpus_of_ranks(const std::vector<VisibleGpus>& ranks);

}  // namespace stratagem::kernels

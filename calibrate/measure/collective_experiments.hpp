// What is measured of ranks that communicate: every collective of the simulator, by group and size.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "calibrate/measure/cpu_experiments.hpp"
#include "calibrate/measure/experiment.hpp"
#include "kernels/ranks/communicator.hpp"

namespace stratagem::calibrate {

/// Ranks r, r + stride, ... of a group of `size`, in every run of size * stride ranks; all such
/// groups work at the same time, and ranks that are left over wait.
struct Grouping {
  int size = 0;
  int stride = 1;
};

/// Groups of every number of ranks, with strides of all powers of two and the widest; of a quick
/// sweep numbers that are powers of two and that of all ranks, with the narrowest and the widest
/// stride.
std::vector<Grouping> groupings(Sweep sweep, int ranks);

/// The ranks of the group that `rank` belongs to, empty if it is left over.
std::vector<int> group_of(const Grouping& grouping, int rank, int ranks);

/// Experiments of the kinds "mpi_all_reduce", "mpi_all_gather" and so on, with columns ranks,
/// stride and size in bytes, fp32. Sizes are payloads of cost/ring.hpp, from 1 KiB to 64 MiB: all
/// that a rank has before or after, whichever is more, less what is over when it is divided into
/// equal parts. A send goes from the first to the second of a group of two, as between stages of a
/// pipeline.
///
/// Buffers are of zeros, which stay zeros however often they are summed, and dealt in turn out of a
/// pool that is twice `cache` (a rank's share of it) and the largest buffers, so none is in a
/// cache; or out of a working set of so many bytes. Preparing makes the group: all ranks do so at
/// the same time.
std::vector<Experiment> collective_experiments(Sweep sweep, Bytes cache,
                                               kernels::Communicator& ranks,
                                               std::optional<Bytes> working_set = std::nullopt);

}  // namespace stratagem::calibrate

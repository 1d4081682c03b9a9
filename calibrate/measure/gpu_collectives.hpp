// What is measured of ranks with a GPU each that communicate: groups, sizes, and rows of a file.
#pragma once

#include <string>
#include <vector>

#include "base/json_writer.hpp"
#include "calibrate/measure/collective_experiments.hpp"
#include "calibrate/measure/experiment.hpp"
#include "calibrate/measure/stopwatch.hpp"
#include "cost/ring.hpp"

namespace stratagem::calibrate {

/// Which groups work at the same time: all of a size and stride, as collective_experiments has
/// them, or the first alone, as nccl-tests has it and NCCL's model speaks of it.
struct GpuGroups {
  Grouping grouping;
  int groups = 1;  ///< at work
};

/// All groupings of a sweep, and of each with neighbours (stride 1) the first group alone, too.
std::vector<GpuGroups> gpu_groups(Sweep sweep, int ranks);

/// The ranks of the group at work that `rank` belongs to, empty if it waits.
std::vector<int> group_of(const GpuGroups& groups, int rank, int ranks);

struct GpuCollective {
  cost::CollectiveKind kind = cost::CollectiveKind::all_reduce;
  GpuGroups groups;
  std::int64_t size = 0;  ///< payload of cost/ring.hpp, in bytes
};

/// All collectives of the groups, from 1 KiB to 1 GiB by factors of two: GPUs are faster than
/// processors, so larger ones count. A send is that of every rank to the next one at once, as
/// sendrecv_perf of nccl-tests has it.
std::vector<GpuCollective> gpu_collectives(const GpuGroups& groups);
inline constexpr std::int64_t largest_gpu_collective = std::int64_t{1} << 30;

/// "nccl_all_reduce" with columns ranks, stride, groups and size; without `prepare`.
Experiment experiment_of(const GpuCollective& collective);

/// Tables of the kinds "nccl_..." while they grow.
class GpuCollectiveTables {
 public:
  /// `cluster` is the preset of the servers, `version` NCCL's.
  GpuCollectiveTables(std::string cluster, std::string version);
  void add(const GpuCollective& collective, const Timed& timed);
  /// One table for each kind, in the order in which kinds came.
  [[nodiscard]] std::vector<Json> json() const;

 private:
  struct Table {
    cost::CollectiveKind kind;
    std::vector<int> fitted_ranks;  ///< numbers of ranks of groups that worked alone
    Json rows = Json::array();
  };
  std::string cluster_, version_;
  std::vector<Table> tables_;
};

}  // namespace stratagem::calibrate

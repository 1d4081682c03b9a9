// PipeDream's partitioner: stages, and how many workers share the micro-batches of each.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "search/partition/rows.hpp"

namespace stratagem::search {

/// Workers that stand in a line. Those of a stage are consecutive, take its micro-batches in turn,
/// and sum their gradients once an iteration.
struct Workers {
  int count = 1;
  /// The time in which so many workers from `first` on sum gradients of so many bytes.
  std::function<study::Picoseconds(int first, int workers, Bytes gradients)> sums;
  /// The time in which worker `first` - 1 sends so many bytes to worker `first`.
  std::function<study::Picoseconds(int first, Bytes payload)> sends;
};

struct ReplicatedStage {
  int end = 0;  ///< the row behind it
  int replicas = 1;
  friend bool operator==(const ReplicatedStage&, const ReplicatedStage&) = default;
};

/// What an iteration takes of a stage on workers from `first` on: the passes of its micro-batches
/// and then the sum of its gradients, or what it sends to the next stage and back, if that takes
/// longer. The `last` stage sends nothing.
study::Picoseconds time_of_stage(const Rows& rows, const Workers& workers, const Row& stage,
                                 int first, int replicas, bool last);
/// Micro-batches that wait on a worker of a stage with `replicas`, if so many workers are in it and
/// behind it.
int in_flight(const Rows& rows, int workers, int replicas);

/// The stages in order such that the slowest is as fast as possible; of such divisions one with the
/// fewest stages. All workers have work, and the replicas of each stage divide the number of
/// micro-batches. Nothing if no division fits. Source: Narayanan et al., PipeDream, SOSP 2019,
/// section 3.1. Unlike there, gradients are summed once an iteration, after its passes.
std::optional<std::vector<ReplicatedStage>> replicated_stages(const Rows& rows,
                                                              const Workers& workers);

}  // namespace stratagem::search

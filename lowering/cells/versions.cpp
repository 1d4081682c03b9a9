// Goes through the rounds of every device class and counts updates.
#include "lowering/cells/versions.hpp"

#include <algorithm>
#include <string>

#include "base/input_error.hpp"

namespace stratagem::lowering {

using strategies::Plan;

namespace {

/// Updates that a replica has seen when the forward cell of each micro-batch of iteration 0 begins,
/// counted from that iteration: -3 means that the updates of the three iterations before are not
/// done.
std::vector<int> newest_at_forward(const Plan& plan, const Replica& replica,
                                   const std::vector<ScheduledCell>& cells) {
  const int update = last_weight_cell(plan, replica.stage, replica.copy, cells);
  std::vector<int> newest(plan.micro_batches, 0);
  for (std::size_t i = 0; update >= 0 && i < cells.size(); ++i) {
    const ScheduledCell& one = cells[i];
    if (one.cell.stage != replica.stage || one.cell.pass != placement::CellPass::forward) continue;
    // In round r runs F of iteration r - lag; the update of iteration r - update.lag has run if it
    // stands earlier in the round, else that of the iteration before.
    const bool done = update < static_cast<int>(i);
    const int updates = -cells[update].lag + (done ? 1 : 0);  // in round 0, counted from 0
    newest[one.cell.micro_batch] = updates + one.lag;
  }
  return newest;
}

/// Versions alive at once: from the oldest that is still to be read to the newest.
int live_versions(const Plan& plan, const Replica& replica, const std::vector<ScheduledCell>& cells,
                  const std::vector<int>& behind) {
  const int update = last_weight_cell(plan, replica.stage, replica.copy, cells);
  if (update < 0) return 1;
  int most = 1;
  // Long after the start, in round 0 of a count that goes both ways: after every cell, the newest
  // version and the oldest that a cell after it reads.
  const auto n = static_cast<int>(cells.size());
  for (int now = 0; now < n; ++now) {
    const int newest = -cells[update].lag + (update <= now ? 1 : 0);
    int oldest = newest;
    for (int later = now + 1; later <= now + n; ++later) {
      const ScheduledCell& one = cells[later % n];
      if (one.cell.stage != replica.stage ||
          plan.copy_of(replica.stage, one.cell.micro_batch) != replica.copy)
        continue;
      const int iteration = later / n - one.lag;
      oldest = std::min(oldest, iteration - behind[one.cell.micro_batch]);
    }
    most = std::max(most, newest - oldest + 1);
  }
  return most;
}

}  // namespace

std::vector<Versions> weight_versions(const Plan& plan, const Stages& stages,
                                      const CellOrder& order) {
  std::vector<Versions> result(stages.replicas().size());
  // Steps that begin beside the next iteration's cells end after them.
  for (Versions& versions : result)
    versions.behind.assign(plan.micro_batches, plan.steps.delayed ? 1 : 0);
  if (plan.updates.flush) return result;
  std::vector<int> class_of(result.size());
  for (std::size_t h = 0; h < stages.device_classes().size(); ++h) {
    for (const int replica : stages.device_classes()[h].replicas)
      class_of[replica] = static_cast<int>(h);
  }
  std::vector<std::vector<int>> newest(result.size());  // by replica, then micro-batch
  for (std::size_t s = 0; s < result.size(); ++s)
    newest[s] = newest_at_forward(plan, stages.replicas()[s], order.rounds[class_of[s]]);
  for (std::size_t s = 0; s < result.size(); ++s) {
    const Replica& replica = stages.replicas()[s];
    for (int m = 0; m < plan.micro_batches; ++m) {
      if (plan.copy_of(replica.stage, m) != replica.copy) continue;
      using Version = strategies::Updates::Version;
      const int on_first = newest[stages.replica(0, plan.copy_of(0, m))][m];
      const int read = plan.updates.version == Version::previous   ? -1
                       : plan.updates.version == Version::vertical ? on_first
                                                                   : newest[s][m];
      if (read > newest[s][m]) {
        throw InputError("", plan.said.updates,
                         "updates that are done when the micro-batches that read them begin: more "
                         "micro-batches per update",
                         std::to_string(plan.micro_batches));
      }
      result[s].behind[m] = -read;
    }
    result[s].live = live_versions(plan, replica, order.rounds[class_of[s]], result[s].behind);
  }
  return result;
}

}  // namespace stratagem::lowering

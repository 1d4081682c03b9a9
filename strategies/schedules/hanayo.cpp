// Hanayo: the stages run down and up over the ranks in waves, so that no stage needs a second copy.
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/list_scheduler.hpp"

namespace stratagem::strategies {
namespace {

/// W waves: 2W chunks on every rank, at most p micro-batches' activations of a rank. With m = p and
/// B = 2F the bubble is (2p-2)F/W for F of a rank's chunks together; the paper orders by hand, here
/// two rules compete: backward cells of old micro-batches first, or forward cells first.
/// Source: Liu et al., Hanayo, SC 2023, section 3.
Timetable hanayo_timetable(const Pipeline& pipeline) {
  const int chunks = pipeline.chunks;
  require(chunks % 2 == 0, "an even number of chunks for hanayo, 2 for every wave", chunks);
  Workload workload{Placement::wave, pipeline, false, {}, {}};
  workload.limits.assign(pipeline.ranks, safe_limits(chunks, pipeline.ranks * chunks));
  Shortest shortest;
  shortest.attempt(workload, [](const Candidate& candidate) {
    return Key{candidate.cell.pass == placement::CellPass::backward ? 0 : 1, candidate.turn,
               -candidate.slot};
  });
  shortest.attempt(workload, [](const Candidate& candidate) {
    const bool forward = candidate.cell.pass == placement::CellPass::forward;
    return Key{forward ? 0 : 1, forward ? -candidate.slot : candidate.slot, candidate.turn};
  });
  return shortest.take();
}

}  // namespace

Schedule hanayo() {
  return {.name = "hanayo",
          .summary = "waves: an even number of chunks a rank, forth and back",
          .placement = Placement::wave,
          .chunks = any_chunks,
          .orders = &hanayo_timetable};
}

}  // namespace stratagem::strategies

// DualPipeV: DualPipe folded at its middle, so that one copy of the weights is enough.
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/dualpipe_rank.hpp"

namespace stratagem::strategies {
namespace {

/// As DualPipe on 2p ranks with 2m micro-batches: bubble (p-1)(F&B + B - 3W) on the first rank if a
/// pair takes as long as its halves; at most 2p+1 stages' activations.
/// Source: Qi, "Cut-in-half" schedule (Sea AI Lab, 2025), as in the DualPipe repository's README.
Timetable dualpipe_v_timetable(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  require_chunks("dualpipe_v", 2, pipeline.chunks);
  require(pipeline.micro_batches >= 2 * p,
          "at least " + std::to_string(2 * p) + " micro-batches for dualpipe_v",
          pipeline.micro_batches);
  Timetable timetable;
  for (int rank = 0; rank < p; ++rank) {
    const std::array<DualStage, 2> stages{{{rank, 0}, {2 * p - 1 - rank, 0}}};
    add_dual_rank({rank, p, pipeline.micro_batches, stages}, timetable);
  }
  return timetable;
}

}  // namespace

Schedule dualpipe_v() {
  return {.name = "dualpipe-v",
          .summary = "dualpipe folded into a V: two chunks a rank, one copy",
          .placement = Placement::wave,
          .chunks = 2,
          .orders = &dualpipe_v_timetable};
}

}  // namespace stratagem::strategies

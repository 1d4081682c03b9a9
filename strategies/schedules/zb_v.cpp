// ZB-V: two stages on every rank, placed as a V; no bubble and 1F1B's memory where F = B = W.
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/memory_bounded.hpp"

namespace stratagem::strategies {
namespace {

/// At most p micro-batches' activations of a rank (2p of its chunks). Where F = B = W no rank waits
/// inside its own span in the cases that are tested, m >= 2p for p = 4, m >= 3p for p = 8; others
/// may.
/// Source: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6.
Timetable zb_v_timetable(const Pipeline& pipeline) {
  require_chunks("zb_v", 2, pipeline.chunks);
  return memory_bounded(pipeline, 2 * pipeline.ranks, {});
}

}  // namespace

Schedule zb_v() {
  return {.name = "zb-v",
          .summary = "two chunks a rank in V order, B and W split: no bubble at 1F1B's memory",
          .placement = Placement::wave,
          .chunks = 2,
          .orders = &zb_v_timetable};
}

}  // namespace stratagem::strategies

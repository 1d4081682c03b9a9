// ZB-H2: twice the warm-up of ZB-H1; no rank waits inside its own span where F = B = W.
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/zero_bubble.hpp"

namespace stratagem::strategies {
namespace {

/// Bubble (p-1)(F+B-2W) inside every rank's own span; 2p-1 micro-batches in flight on every rank.
/// The makespan keeps the shift of the ranks' spans: the paper closes it by letting the optimizer
/// step of a rank begin before the others have ended (post-validation).
/// Source: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, sections 2 and 4.
Timetable zb_h2_timetable(const Pipeline& pipeline) {
  require_chunks("zb_h2", 1, pipeline.chunks);
  return zero_bubble(pipeline, 2);
}

}  // namespace

Schedule zb_h2() {
  return {.name = "zb-h2",
          .summary = "as zb-h1 without a bubble between iterations, at twice 1F1B's memory",
          .orders = &zb_h2_timetable};
}

}  // namespace stratagem::strategies

// ZB-H1: 1F1B whose bubbles are filled with weight gradients.
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/zero_bubble.hpp"

namespace stratagem::strategies {
namespace {

/// Bubble (p-1)(F+B-W) inside every rank's own span; p micro-batches in flight on every rank.
/// Source: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.
Timetable zb_h1_timetable(const Pipeline& pipeline) {
  require_chunks("zb_h1", 1, pipeline.chunks);
  return zero_bubble(pipeline, 1);
}

}  // namespace

Schedule zb_h1() {
  return {.name = "zb-h1",
          .summary = "backward cells split in B and W: a third of 1F1B's bubble at its memory",
          .orders = &zb_h1_timetable};
}

}  // namespace stratagem::strategies

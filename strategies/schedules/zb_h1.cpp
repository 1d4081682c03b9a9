// ZB-H1: 1F1B whose bubbles are filled with weight gradients.
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/zero_bubble.hpp"
#include "strategies/schedules/timetables.hpp"

namespace stratagem::strategies::timetables {

/// Bubble (p-1)(F+B-W) inside every rank's own span; p micro-batches in flight on every rank.
/// Source: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.
Timetable zb_h1(const Pipeline& pipeline) {
  require_chunks("zb_h1", 1, pipeline.chunks);
  return zero_bubble(pipeline, 1);
}

}  // namespace stratagem::strategies::timetables

// V-Min: ZB-V's placement in about a third of 1F1B's activation memory.
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/memory_bounded.hpp"

namespace stratagem::strategies {
namespace {

/// At most floor((p+4)/3) micro-batches' activations of a rank. The extra 2 where 3 divides p keeps
/// the beginnings of a rank's cells apart modulo 6.
/// Source: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024: its
/// V-shaped building blocks.
Timetable v_min_timetable(const Pipeline& pipeline) {
  require_chunks("v_min", 2, pipeline.chunks);
  const int p = pipeline.ranks;
  const int apart = p % 3 == 0 ? 2 : 0;
  return memory_bounded(pipeline, 2 * ((p + 4) / 3), [p, apart](int rank) {
    return VPattern{rank, 2 * p - rank - 1, 2 * p + apart + rank, 4 * p + apart - rank - 1};
  });
}

}  // namespace

Schedule v_min() {
  return {.name = "v-min",
          .summary = "as zb-v at a third of 1F1B's memory",
          .placement = Placement::wave,
          .chunks = 2,
          .orders = &v_min_timetable};
}

}  // namespace stratagem::strategies

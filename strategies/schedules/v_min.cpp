// V-Min: ZB-V's placement in about a third of 1F1B's activation memory.
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/memory_bounded.hpp"
#include "strategies/schedules/timetables.hpp"

namespace stratagem::strategies::timetables {

/// At most floor((p+4)/3) micro-batches' activations of a rank. The extra 2 where 3 divides p keeps
/// the beginnings of a rank's cells apart modulo 6.
/// Source: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024: its
/// V-shaped building blocks.
Timetable v_min(const Pipeline& pipeline) {
  require_chunks("v_min", 2, pipeline.chunks);
  const int p = pipeline.ranks;
  const int apart = p % 3 == 0 ? 2 : 0;
  return memory_bounded(pipeline, 2 * ((p + 4) / 3), [p, apart](int rank) {
    return VPattern{rank, 2 * p - rank - 1, 2 * p + apart + rank, 4 * p + apart - rank - 1};
  });
}

}  // namespace stratagem::strategies::timetables

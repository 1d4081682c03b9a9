// V-Half: ZB-V's placement in about half of 1F1B's activation memory.
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/memory_bounded.hpp"
#include "strategies/schedules/timetables.hpp"

namespace stratagem::strategies::timetables {

/// At most floor((p+2)/2) micro-batches' activations of a rank. The extra 3 where p is even keeps
/// the beginnings of a rank's cells apart modulo 6.
/// Source: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024: its
/// V-shaped building blocks.
Timetable v_half(const Pipeline& pipeline) {
  require_chunks("v_half", 2, pipeline.chunks);
  const int p = pipeline.ranks;
  const int apart = p % 2 == 0 ? 3 : 0;
  return memory_bounded(pipeline, 2 * ((p + 2) / 2), [p, apart](int rank) {
    return VPattern{2 * rank, 3 * p - rank - 2, 3 * p + apart + 2 * rank - 1,
                    6 * p + apart - rank - 2};
  });
}

}  // namespace stratagem::strategies::timetables

// V-Half: ZB-V's placement in about half of 1F1B's activation memory.
#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/memory_bounded.hpp"

namespace stratagem::strategies {
namespace {

/// At most floor((p+2)/2) micro-batches' activations of a rank. The extra 3 where p is even keeps
/// the beginnings of a rank's cells apart modulo 6.
/// Source: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024: its
/// V-shaped building blocks.
Timetable v_half_timetable(const Pipeline& pipeline) {
  require_chunks("v_half", 2, pipeline.chunks);
  const int p = pipeline.ranks;
  const int apart = p % 2 == 0 ? 3 : 0;
  return memory_bounded(pipeline, 2 * ((p + 2) / 2), [p, apart](int rank) {
    return VPattern{2 * rank, 3 * p - rank - 2, 3 * p + apart + 2 * rank - 1,
                    6 * p + apart - rank - 2};
  });
}

}  // namespace

Schedule v_half() {
  return {.name = "v-half",
          .summary = "as zb-v at half of 1F1B's memory, with a small bubble",
          .placement = Placement::wave,
          .chunks = 2,
          .orders = &v_half_timetable};
}

}  // namespace stratagem::strategies

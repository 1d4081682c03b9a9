// 1F1B (PipeDream-flush): after a warm-up every rank alternates forward and backward cells.
#include <algorithm>

#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetables.hpp"

namespace stratagem::strategies::timetables {

/// Makespan as GPipe's; min(m, p-s) micro-batches in flight at stage s.
/// Source: Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021,
/// section 3.2.
Timetable one_f_one_b(const Pipeline& pipeline) {
  require_chunks("1f1b", 1, pipeline.chunks);
  Timetable timetable;
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    auto& cells = timetable.ranks.emplace_back();
    const int warm_up = std::min(pipeline.micro_batches, pipeline.ranks - 1 - rank);
    for (int m = 0; m < pipeline.micro_batches + warm_up; ++m) {
      if (m < pipeline.micro_batches) cells.push_back({rank, m, CellPass::forward});
      if (m >= warm_up) cells.push_back({rank, m - warm_up, CellPass::backward});
    }
  }
  return timetable;
}

}  // namespace stratagem::strategies::timetables

// GPipe: every rank runs all forward cells, then all backward cells.
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetables.hpp"

namespace stratagem::strategies::timetables {

/// Bubble (p-1)(F+B) of a makespan (m+p-1)(F+B); m micro-batches in flight.
/// Source: Huang et al., GPipe, NeurIPS 2019, section 2.3.
Timetable gpipe(const Pipeline& pipeline) {
  require_chunks("gpipe", 1, pipeline.chunks);
  Timetable timetable;
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    auto& cells = timetable.ranks.emplace_back();
    for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
      for (int m = 0; m < pipeline.micro_batches; ++m) cells.push_back({rank, m, pass});
    }
  }
  return timetable;
}

}  // namespace stratagem::strategies::timetables

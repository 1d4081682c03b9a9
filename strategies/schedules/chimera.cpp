// Chimera: two copies of the model run through the ranks in opposite directions.
#include <algorithm>

#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/list_scheduler.hpp"

namespace stratagem::strategies {
namespace {

/// With m = p: bubble (p-2)F if F = B, 2(p-2)F if B = 2F; between p/2 + 1 (ends) and p (middle)
/// micro-batches in flight. More micro-batches than ranks are the paper's concatenated units, whose
/// first forward cells fill the last bubbles of the unit before; no rank holds more than p then.
/// Source: Li and Hoefler, Chimera, SC 2021, sections 3.1 and 3.5.
Timetable chimera_timetable(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  require(p % 2 == 0, "an even number of pipeline ranks for chimera", p);
  require(pipeline.micro_batches % 2 == 0, "an even number of micro-batches for chimera",
          pipeline.micro_batches);
  Workload workload{Placement::bidirectional, pipeline, false, {}, {}};
  for (int rank = 0; rank < p; ++rank) {
    auto& limits = workload.limits.emplace_back();
    // A stage has use for as many as 1F1B gives it; p-1 leave one to the other direction, for two
    // directions that fill each other's ranks would wait for ever.
    const int most = std::min(p / 2 + 1, p - 1);
    limits = {{0, 0, std::min(most, p - rank)}, {1, 1, std::min(most, rank + 1)}, {0, 1, p}};
  }
  const auto listed = list_schedule(workload, [](const Candidate& candidate) {
    return Key{candidate.cell.pass == placement::CellPass::backward ? 0 : 1, candidate.turn,
               candidate.slot};
  });
  expects(listed.has_value(), "each direction of chimera has room of its own");
  return listed->timetable;
}

}  // namespace

Schedule chimera() {
  return {.name = "chimera",
          .summary = "two copies of the model, one from either end of the pipeline",
          .placement = Placement::bidirectional,
          .orders = &chimera_timetable};
}

}  // namespace stratagem::strategies

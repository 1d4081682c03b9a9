// DualPipe: micro-batches enter at both ends, and forward cells run together with backward cells.
#include <algorithm>

#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"
#include "strategies/schedules/timetable/dualpipe_rank.hpp"

namespace stratagem::strategies {
namespace {

/// Bubble (p/2-1)(F&B + B - 3W) on the end ranks if a pair takes as long as its halves, less if it
/// is shorter; at most p+1 micro-batches in flight; two copies of the weights.
/// Source: DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1.
Timetable dualpipe_timetable(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  const int m = pipeline.micro_batches;
  require_chunks("dualpipe", 1, pipeline.chunks);
  require(p % 2 == 0, "an even number of pipeline ranks for dualpipe", p);
  require(m % 2 == 0 && m >= 2 * p,
          "an even number of micro-batches for dualpipe, at least " + std::to_string(2 * p), m);
  Timetable timetable;
  for (int rank = 0; rank < p; ++rank) {
    DualRank dual{std::min(rank, p - 1 - rank), p / 2, m / 2, {}};
    dual.stages = {{{rank, 0}, {p - 1 - rank, m / 2}}};
    // The lower half meets the micro-batches of copy 1 first.
    if (rank >= p / 2) std::swap(dual.stages[0], dual.stages[1]);
    add_dual_rank(dual, timetable);
  }
  return timetable;
}

}  // namespace

Schedule dualpipe() {
  return {.name = "dualpipe",
          .summary = "as chimera, with B and W split and forward beside backward cells",
          .placement = Placement::bidirectional,
          .orders = &dualpipe_timetable};
}

}  // namespace stratagem::strategies

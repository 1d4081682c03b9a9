// ZB-H1 and ZB-H2: 1F1B with split backward cells, whose weight gradients fill bubbles.
#include <algorithm>

#include "strategies/schedules/all.hpp"

namespace stratagem::strategies {
namespace {

using placement::CellPass;

/// Rank s warms up with slope * (p-1-s) forward cells, and its weight cells lag slope * s behind
/// its backward cells, so that every rank runs the triple
/// F(x), B(x - slope(p-1-s)), W(x - slope(p-1)).
Timetable zero_bubble(const Pipeline& pipeline, int slope) {
  Timetable timetable;
  const int all = pipeline.micro_batches;
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    auto& cells = timetable.ranks.emplace_back();
    const int warm_up = std::min(all, slope * (pipeline.ranks - 1 - rank));
    const int lag = warm_up + slope * rank;
    for (int m = 0; m < all + lag; ++m) {
      if (m < all) cells.push_back({rank, m, CellPass::forward});
      if (m >= warm_up && m < all + warm_up)
        cells.push_back({rank, m - warm_up, CellPass::backward});
      if (m >= lag) cells.push_back({rank, m - lag, CellPass::weight});
    }
  }
  return timetable;
}

}  // namespace

/// Bubble (p-1)(F+B-W) inside every rank's own span; p micro-batches in flight on every rank.
/// Source: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.
Schedule zb_h1() {
  return {.name = "zb-h1",
          .summary = "backward cells split in B and W: a third of 1F1B's bubble at its memory",
          .orders = [](const Pipeline& pipeline) { return zero_bubble(pipeline, 1); }};
}

/// Twice the warm-up: bubble (p-1)(F+B-2W) inside every rank's own span, none where F = B = W;
/// 2p-1 micro-batches in flight on every rank. The makespan keeps the shift of the ranks' spans:
/// the paper closes it by letting the optimizer step of a rank begin before the others have ended
/// (post-validation). Source: the same, sections 2 and 4.
Schedule zb_h2() {
  return {.name = "zb-h2",
          .summary = "as zb-h1 without a bubble between iterations, at twice 1F1B's memory",
          .orders = [](const Pipeline& pipeline) { return zero_bubble(pipeline, 2); }};
}

}  // namespace stratagem::strategies

// What ZB-H1 and ZB-H2 share: the steady triple of a forward, a backward and a weight cell.
#include "strategies/schedules/timetable/zero_bubble.hpp"

#include <algorithm>

namespace stratagem::strategies {

using placement::CellPass;

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

}  // namespace stratagem::strategies

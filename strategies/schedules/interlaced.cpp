// Interlaced pipeline: the embeddings stand on all ranks and take turns with the stages.
#include "strategies/schedules/interlaced.hpp"

namespace stratagem::strategies {

using placement::CellPass;

/// In step t of m+p-1 all ranks embed micro-batch t, then rank s runs F(t - s/2) and
/// B(t - (p-1-s/2)), in the other order where s is odd, then all take the gradient of the
/// embeddings of micro-batch t-(p-1) (halves rounded down; as far as micro-batches exist). No
/// bubble in the steady state where F and B take equally long: a period is 2 te + 2 max(F, B).
/// Source: Lin et al., nnScaler, OSDI 2024, section 3 and Table 6; the order is that of its
/// hand-written mBART.
Timetable interlaced(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  const int m = pipeline.micro_batches;
  Timetable result;
  for (int s = 0; s < p; ++s) {
    std::vector<placement::Cell>& cells = result.ranks.emplace_back();
    const auto add = [&](int stage, int micro_batch, CellPass pass) {
      if (micro_batch >= 0 && micro_batch < m) cells.push_back({stage, micro_batch, pass});
    };
    for (int t = 0; t < m + p - 1; ++t) {
      add(0, t, CellPass::forward);
      const int forward = t - s / 2;
      const int backward = t - (p - 1 - s / 2);
      if (s % 2 == 0) add(1 + s, forward, CellPass::forward);
      add(1 + s, backward, CellPass::backward);
      if (s % 2 == 1) add(1 + s, forward, CellPass::forward);
      add(0, t - (p - 1), CellPass::backward);
    }
  }
  return result;
}

}  // namespace stratagem::strategies

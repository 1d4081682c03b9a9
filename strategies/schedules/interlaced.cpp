// Interlaced pipeline: embeddings and head stand on all ranks and take turns with the stages.
#include "strategies/schedules/all.hpp"

namespace stratagem::strategies {
namespace {

using placement::CellPass;

/// In window t all ranks run the head of micro-batch t-h forward, embed t, and run the head of t-h
/// backward. Then rank s runs F(t - s/2) and B(t - h - (p-1-s)), in the other order where s is odd.
/// Then all take the gradient of the embeddings of t - h - (p-1). Here h is p/2 rounded up, s/2 is
/// rounded down, and micro-batches are those that exist. So F passes two ranks in a window, an even
/// and the next odd one, and B passes one. Where B takes at least as long as F, the bubble is
/// 1F1B's, (p-1)(F + B), and F more for an odd p, whatever the ends take. At most 3p/2 (rounded up)
/// micro-batches are in flight. Sources: Lin et al., nnScaler, OSDI 2024, section 3 and Table 6
/// (the plan); the repeated part is the one of its search, Tessel (HPCA 2024), for four stages and
/// B of three spans.
Timetable interlaced_timetable(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  const int m = pipeline.micro_batches;
  const int half = (p + 1) / 2;
  const int head = p + 1;
  Timetable result;
  for (int s = 0; s < p; ++s) {
    std::vector<placement::Cell>& cells = result.ranks.emplace_back();
    const auto add = [&](int stage, int micro_batch, CellPass pass) {
      if (micro_batch >= 0 && micro_batch < m) cells.push_back({stage, micro_batch, pass});
    };
    for (int t = 0; t < m + half + p - 1; ++t) {
      add(head, t - half, CellPass::forward);
      add(0, t, CellPass::forward);
      add(head, t - half, CellPass::backward);
      if (s % 2 == 0) add(1 + s, t - s / 2, CellPass::forward);
      add(1 + s, t - half - (p - 1 - s), CellPass::backward);
      if (s % 2 == 1) add(1 + s, t - s / 2, CellPass::forward);
      add(0, t - half - (p - 1), CellPass::backward);
    }
  }
  return result;
}

}  // namespace

Schedule interlaced() {
  return {
      .name = "interlaced",
      .summary =
          "embeddings and head on all ranks, which take turns with the stages: no bubble at one "
          "and a half times 1F1B's memory",
      .orders = &interlaced_timetable,
      .spreads_ends = true};
}

}  // namespace stratagem::strategies

// Interleaved 1F1B: several stages on every rank, so that the pipeline fills in smaller steps.
#include <algorithm>

#include "strategies/schedules/all.hpp"
#include "strategies/schedules/require.hpp"

namespace stratagem::strategies {

using placement::CellPass;

namespace {

/// The k-th forward (backward) cell of a rank: p micro-batches go through its chunks in ascending
/// (descending) order before the next p.
placement::Cell kth_cell(const Pipeline& pipeline, int rank, int k, CellPass pass) {
  const int round = pipeline.ranks * pipeline.chunks;
  const int turn = k % round;
  const int step = turn / pipeline.ranks;
  const int chunk = pass == CellPass::forward ? step : pipeline.chunks - 1 - step;
  const int micro_batch = k / round * pipeline.ranks + turn % pipeline.ranks;
  return {stage_of(Placement::loop, pipeline.ranks, rank, chunk), micro_batch, pass};
}

/// The rank's cells: so many forward cells, then forward and backward cells by turns.
std::vector<placement::Cell> cells_of(const Pipeline& pipeline, int rank, int warm_up) {
  std::vector<placement::Cell> cells;
  const int all = pipeline.micro_batches * pipeline.chunks;
  for (int k = 0; k < all + warm_up; ++k) {
    if (k < all) cells.push_back(kth_cell(pipeline, rank, k, CellPass::forward));
    if (k >= warm_up) cells.push_back(kth_cell(pipeline, rank, k - warm_up, CellPass::backward));
  }
  return cells;
}

/// The fewest forward cells after which a rank never waits in its turns, if all cells take equally
/// long.
int warm_up_of(const Pipeline& pipeline, int rank) {
  return 2 * (pipeline.ranks - 1 - rank) + (pipeline.chunks - 1) * pipeline.ranks;
}

void check(const Pipeline& pipeline) {
  require(pipeline.micro_batches % pipeline.ranks == 0,
          "a number of micro-batches that is a multiple of the " + std::to_string(pipeline.ranks) +
              " pipeline ranks",
          pipeline.micro_batches);
}

/// Makespan m(F+B) + (p-1)(F+B)/v for F and B of a rank's chunks together; at rank r
/// min(mv, 2(p-1-r) + (v-1)p + 1) chunks in flight.
/// Source: Narayanan et al., Efficient Large-Scale Language Model Training, SC 2021, section 2.2.2.
Timetable interleaved_timetable(const Pipeline& pipeline) {
  require(pipeline.chunks >= 2, "several pipeline ranks, or chunks of at least 2, for interleaved",
          pipeline.chunks);
  check(pipeline);
  Timetable timetable;
  const int all = pipeline.micro_batches * pipeline.chunks;
  for (int rank = 0; rank < pipeline.ranks; ++rank)
    timetable.ranks.push_back(cells_of(pipeline, rank, std::min(all, warm_up_of(pipeline, rank))));
  return timetable;
}

/// Makespan m(F+B) + (p-1)(F+B)/v if a pair takes as long as its halves, less if it is shorter; at
/// rank r min(mv, 2(p-1-r) + (v-1)p + 2) chunks in flight. One more forward cell than `interleaved`
/// runs ahead, so that no pair waits for itself.
/// Source: NVIDIA/Megatron-LM d98e8a64, core/pipeline_parallel/combined_1f1b.py and schedules.py,
/// get_pp_rank_microbatches.
Timetable combined_timetable(const Pipeline& pipeline) {
  check(pipeline);
  Timetable timetable;
  const int all = pipeline.micro_batches * pipeline.chunks;
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    const int warm_up = std::min(all, warm_up_of(pipeline, rank) + 1);
    timetable.ranks.push_back(cells_of(pipeline, rank, warm_up));
    for (int k = warm_up; k < all; ++k) {
      timetable.together.emplace_back(kth_cell(pipeline, rank, k, CellPass::forward),
                                      kth_cell(pipeline, rank, k - warm_up, CellPass::backward));
    }
  }
  return timetable;
}

}  // namespace

Schedule interleaved() {
  return {
      .name = "interleaved",
      .summary = "1F1B with several stages (chunks) on every rank: a bubble as many times smaller",
      .chunks = any_chunks,
      .orders = &interleaved_timetable};
}

Schedule combined_one_f_one_b() {
  return {
      .name = "combined-1f1b",
      .summary =
          "interleaved with one more forward cell ahead, and each forward cell beside a backward "
          "cell of another micro-batch",
      .chunks = any_chunks,
      .orders = &combined_timetable};
}

}  // namespace stratagem::strategies

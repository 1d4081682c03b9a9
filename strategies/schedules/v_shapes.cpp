// ZB-V, V-Half and V-Min: two stages on every rank, placed as a V, within a memory limit. The
// memory of a rank is split between its two stages, and the best of a few rules is taken.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "strategies/schedules/all.hpp"
#include "strategies/schedules/timetable/list_scheduler.hpp"

namespace stratagem::strategies {

using placement::Cell;
using placement::CellPass;

namespace {

/// When a rank begins the four cells F chunk 0, F chunk 1, B chunk 1, B chunk 0 of micro-batch 0 if
/// every cell takes 1; those of micro-batch m begin 6m later, and W fills what is left.
using VPattern = std::array<int, 4>;

/// Weight gradients wait for nobody, so they only fill gaps or make room.
int place_of(CellPass pass, CellPass preferred) {
  if (pass == CellPass::weight) return 2;
  return pass == preferred ? 0 : 1;
}

/// Cells of `preferred` first, and of those what is deeper in the model, for others wait for it.
Priority pass_first(CellPass preferred) {
  return [preferred](const Candidate& candidate) {
    return Key{place_of(candidate.cell.pass, preferred), -candidate.slot, candidate.turn};
  };
}

int begin_of(const VPattern& pattern, const Candidate& candidate) {
  const int slot = candidate.cell.pass == CellPass::forward ? candidate.slot : 3 - candidate.slot;
  return pattern[slot] + 6 * candidate.turn;
}

Priority pattern_first(const std::function<VPattern(int)>& pattern) {
  return [pattern](const Candidate& candidate) {
    const bool weight = candidate.cell.pass == CellPass::weight;
    const int begin = weight ? candidate.turn : begin_of(pattern(candidate.rank), candidate);
    return Key{weight ? 1 : 0, begin, -candidate.slot};
  };
}

/// The forward and backward cells of every rank in the order in which the pattern begins them.
std::vector<std::vector<Cell>> pattern_order(const Pipeline& pipeline,
                                             const std::function<VPattern(int)>& pattern) {
  std::vector<std::vector<Cell>> order(pipeline.ranks);
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    std::vector<std::pair<int, Cell>> begins;
    for (int m = 0; m < pipeline.micro_batches; ++m) {
      for (int slot = 0; slot < 2; ++slot) {
        for (const CellPass pass : {CellPass::forward, CellPass::backward}) {
          const Cell cell{stage_of(Placement::wave, pipeline.ranks, rank, slot), m, pass};
          begins.emplace_back(begin_of(pattern(rank), {cell, rank, slot, m}), cell);
        }
      }
    }
    std::ranges::sort(begins);
    for (const auto& [begin, cell] : begins) order[rank].push_back(cell);
  }
  return order;
}

/// Chunk 0 of rank 0 begins a micro-batch and ends it, so it needs nearly all of the memory; on the
/// last rank, where the V turns, both chunks live equally long and share. Between them: a line.
std::vector<std::vector<Limit>> v_limits(const Pipeline& pipeline, int most, int last_share) {
  std::vector<std::vector<Limit>> limits;
  for (int rank = 0; rank < pipeline.ranks; ++rank) {
    auto& limit = limits.emplace_back(safe_limits(2, most));
    const int fall = std::max(0, most - 1 - last_share);
    limit.front().most -=
        (fall * rank + (pipeline.ranks - 1) / 2) / std::max(1, pipeline.ranks - 1);
  }
  return limits;
}

/// The shortest timetable found in which no rank holds more than `most` activations of a stage; of
/// equally short ones, that with the smallest bubble. Any numbers have one if most >= 2.
/// Without `pattern` only the rules that need none are tried.
Timetable memory_bounded(const Pipeline& pipeline, int most,
                         const std::function<VPattern(int)>& pattern) {
  Shortest shortest;
  for (const int last_share : {most / 2, most / 2 + 1}) {
    const Workload workload{
        Placement::wave, pipeline, true, v_limits(pipeline, most, last_share), {}};
    for (const CellPass preferred : {CellPass::forward, CellPass::backward})
      shortest.attempt(workload, pass_first(preferred));
    if (pattern) shortest.attempt(workload, pattern_first(pattern));
  }
  if (pattern) {
    Workload workload{Placement::wave, pipeline, true, {}, pattern_order(pipeline, pattern)};
    workload.limits.assign(pipeline.ranks, safe_limits(2, most));
    shortest.attempt(workload, pass_first(CellPass::forward));
  }
  return shortest.take();
}

/// At most p micro-batches' activations of a rank (2p of its chunks). Where F = B = W no rank waits
/// inside its own span in the cases that are tested, m >= 2p for p = 4, m >= 3p for p = 8; others
/// may.
/// Source: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 6.
Timetable zb_v_timetable(const Pipeline& pipeline) {
  return memory_bounded(pipeline, 2 * pipeline.ranks, {});
}

/// At most floor((p+2)/2) micro-batches' activations of a rank. The extra 3 where p is even keeps
/// the beginnings of a rank's cells apart modulo 6.
/// Source: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024: its
/// V-shaped building blocks.
Timetable v_half_timetable(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  const int apart = p % 2 == 0 ? 3 : 0;
  return memory_bounded(pipeline, 2 * ((p + 2) / 2), [p, apart](int rank) {
    return VPattern{2 * rank, 3 * p - rank - 2, 3 * p + apart + 2 * rank - 1,
                    6 * p + apart - rank - 2};
  });
}

/// At most floor((p+4)/3) micro-batches' activations of a rank. The extra 2 where 3 divides p keeps
/// the beginnings of a rank's cells apart modulo 6.
/// Source: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024: its
/// V-shaped building blocks.
Timetable v_min_timetable(const Pipeline& pipeline) {
  const int p = pipeline.ranks;
  const int apart = p % 3 == 0 ? 2 : 0;
  return memory_bounded(pipeline, 2 * ((p + 4) / 3), [p, apart](int rank) {
    return VPattern{rank, 2 * p - rank - 1, 2 * p + apart + rank, 4 * p + apart - rank - 1};
  });
}

}  // namespace

Schedule zb_v() {
  return {.name = "zb-v",
          .summary = "two chunks a rank in V order, B and W split: no bubble at 1F1B's memory",
          .placement = Placement::wave,
          .chunks = 2,
          .orders = &zb_v_timetable};
}

Schedule v_half() {
  return {.name = "v-half",
          .summary = "as zb-v at half of 1F1B's memory, with a small bubble",
          .placement = Placement::wave,
          .chunks = 2,
          .orders = &v_half_timetable};
}

Schedule v_min() {
  return {.name = "v-min",
          .summary = "as zb-v at a third of 1F1B's memory",
          .placement = Placement::wave,
          .chunks = 2,
          .orders = &v_min_timetable};
}

}  // namespace stratagem::strategies

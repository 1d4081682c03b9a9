// Splits the memory of every rank of a V between its two stages, and takes the best of a few rules.
#include "strategies/schedules/timetable/memory_bounded.hpp"

#include <algorithm>
#include <utility>

#include "strategies/schedules/timetable/shortest.hpp"

namespace stratagem::strategies {

using placement::Cell;
using placement::CellPass;

namespace {

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

}  // namespace

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

}  // namespace stratagem::strategies

// A pipeline schedule: the order in which every pipeline rank runs its cells.
#pragma once

#include <utility>
#include <vector>

#include "placement/cell.hpp"

namespace stratagem::strategies {

/// Durations by which schedules that look ahead rank cells; only their ratios matter. A backward
/// cell that is not split takes input + weight.
struct CellCosts {
  int forward = 1;
  int input = 1;   ///< B where it is split
  int weight = 1;  ///< W
};

/// Which stage is the c-th one (chunk) on a pipeline rank.
enum class Placement {
  loop,          ///< stage c * ranks + rank
  wave,          ///< as loop for even c; c * ranks + (ranks - 1 - rank) for odd c: V where c < 2
  bidirectional  ///< two copies of the model: stage `rank` of copy 0, `ranks - 1 - rank` of copy 1
};
int stage_of(Placement, int ranks, int rank, int chunk);
/// The inverse: the rank on which a stage of a copy stands (copy 0 but for bidirectional).
int rank_of(Placement, int ranks, int stage, int copy);

/// The pipeline to be ordered.
struct Pipeline {
  int ranks = 1;
  int chunks = 1;         ///< stages on every rank; 1 for each copy where bidirectional
  int micro_batches = 1;  ///< in both directions together: the first half goes down (copy 0)
  CellCosts costs;

  [[nodiscard]] int stages(Placement placement) const {
    return placement == Placement::bidirectional ? ranks : ranks * chunks;
  }
};

/// The cells of every rank in order. Cells of a pair in `together` stand next to each other and run
/// as one: they begin when both may, and what they compute leaves when both have ended.
struct Timetable {
  std::vector<std::vector<placement::Cell>> ranks;
  std::vector<std::pair<placement::Cell, placement::Cell>> together;
};

}  // namespace stratagem::strategies

// What DualPipe and DualPipeV share: the order of one rank's cells in eight steps.
#pragma once

#include <array>

#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

/// The two stages of a rank, which take turns. Stage 0 is the one that gets its first micro-batch
/// earlier.
struct DualStage {
  int stage = 0;
  int first_micro_batch = 0;
};

/// Where the rank stands: `place` steps from the end at which micro-batches enter, of `places`;
/// the last place is where they turn round or meet those of the other direction.
struct DualRank {
  int place = 0;
  int places = 1;
  int micro_batches = 2;  ///< of each stage, at least 2 x places
  std::array<DualStage, 2> stages;
};

/// Appends the rank's cells, and its pairs of a forward and a backward cell that run together.
/// Source: DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1; the steps as in the
/// DualPipe repository's README and figures.
void add_dual_rank(const DualRank& rank, Timetable& timetable);

}  // namespace stratagem::strategies

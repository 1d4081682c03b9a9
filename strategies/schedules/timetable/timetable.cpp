// Maps the stages of a pipeline to its ranks and back, for every placement.
#include "strategies/schedules/timetable/timetable.hpp"

namespace stratagem::strategies {

int stage_of(Placement placement, int ranks, int rank, int chunk) {
  const int mirrored = ranks - 1 - rank;
  if (placement == Placement::bidirectional) return chunk == 0 ? rank : mirrored;
  const bool upwards = placement == Placement::wave && chunk % 2 == 1;
  return chunk * ranks + (upwards ? mirrored : rank);
}

int rank_of(Placement placement, int ranks, int stage, int copy) {
  const int offset = stage % ranks;
  const bool upwards = placement == Placement::bidirectional
                           ? copy == 1
                           : placement == Placement::wave && stage / ranks % 2 == 1;
  return upwards ? ranks - 1 - offset : offset;
}

}  // namespace stratagem::strategies

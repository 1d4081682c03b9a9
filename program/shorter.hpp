// The sequences of a program for fewer micro-batches: loops have fewer turns.
#pragma once

#include <optional>
#include <vector>

#include "program/program.hpp"

namespace stratagem::program {

/// All sequences of a program for `count` fewer micro-batches; in schedules of two directions, fewer
/// of each. Each has as many turns less of one loop, its long one, whose turns free as many buffers as they allocate. All else is as it was, and
/// so is what waits for what: calls after the loop are for the last micro-batches, those before it
/// for the first.
struct Shorter {
  struct LongLoop {
    int loop = 0;   ///< of Calls::loops
    int turns = 0;  ///< that it lacks
  };
  int count = 0;
  std::vector<Sequence> sequences;
  std::vector<LongLoop> long_loops;  ///< by sequence
};

/// As short as it can be, but for turns of at least `spare` micro-batches in all long loops. Empty
/// where that would lack less than a quarter of all micro-batches; where a sequence has no long loop,
/// or one whose turns are of more micro-batches than another's; where ranks of a communicator would
/// lack different collectives; where calls before or after a loop cannot be those of the first and
/// last micro-batches; and where iterations overlap.
std::optional<Shorter> shorter(const Program& program, int spare);

}  // namespace stratagem::program

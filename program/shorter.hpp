// The sequences of a program for fewer micro-batches: loops have fewer turns.
#pragma once

#include <optional>
#include <vector>

#include "program/program.hpp"

namespace stratagem::program {

/// All sequences of a program for `count` fewer micro-batches. In schedules of two directions each
/// direction has so many fewer. Every sequence has one long loop, whose turns free as many buffers
/// as they allocate, and lacks some of its turns. Calls before that loop are for the first
/// micro-batches, calls after it for the last. What waits for what is as it was.
struct Shorter {
  struct LongLoop {
    int loop = 0;   ///< of Calls::loops
    int turns = 0;  ///< that it lacks
  };
  int count = 0;
  std::vector<Sequence> sequences;
  std::vector<LongLoop> long_loops;  ///< by sequence
};

/// As short as it can be. All long loops keep at least so many `turns`, of at least `spare`
/// micro-batches. Empty if
///   - it would lack less than a quarter of all micro-batches;
///   - a sequence has no long loop, or turns of two sequences are of different numbers of
///     micro-batches;
///   - ranks of a communicator would lack different collectives;
///   - a call before or after a loop cannot be for one of the first or last micro-batches;
///   - iterations overlap.
std::optional<Shorter> shorter(const Program& program, int spare, int turns = 2);

}  // namespace stratagem::program

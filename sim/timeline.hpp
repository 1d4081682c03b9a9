// What happened: when every task of every actor began and ended.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/fold.hpp"
#include "sim/instant.hpp"
#include "strategies/program.hpp"

namespace stratagem::sim {

/// A task of a sequence, laid out flat in the order of the program.
struct FlatTask {
  int call = 0;
  int block = 0;
  int task = 0;
  strategies::Stream stream = strategies::Stream::compute;
};

/// Times of one actor: [iteration][flat task]. A collective begins when its last rank has arrived.
struct ActorTimes {
  std::vector<std::vector<Instant>> begins;
  std::vector<std::vector<Instant>> ends;
};

struct Timeline {
  std::vector<std::vector<FlatTask>> tasks;  ///< by sequence
  std::vector<Actor> actors;
  std::vector<ActorTimes> times;        ///< by actor
  std::vector<Instant> iteration_ends;  ///< when the last task of each iteration ended anywhere
  bool steady = false;                  ///< the last two periods agree to the picosecond
};

}  // namespace stratagem::sim

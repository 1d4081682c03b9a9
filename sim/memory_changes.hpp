// Births and deaths of a device's buffers in the order of time.
#pragma once

#include <vector>

#include "base/quantity.hpp"
#include "sim/timeline.hpp"
#include "strategies/program.hpp"

namespace stratagem::sim {

/// A birth or a death.
struct MemoryChange {
  Instant when;
  bool begun = false;  ///< by a task that began at this instant
  int task = 0;        ///< round * tasks of a round + place in the sequence
  int buffer = -1;     ///< births and deaths of one buffer have its number; -1: nobody bore it
  strategies::Category category = strategies::Category::temporaries;
  Bytes bytes;  ///< below 0: a death
  Instant ready{
      0};  ///< of a death: when the last collective that reads or writes the buffer has ended
};

/// Those in a place of the first iteration; where iterations overlap, those of as many rounds as it takes to
/// have as many under way as ever. Births count when a task begins and deaths when it ends. At one
/// instant first come deaths of tasks that ran until then, then births, and deaths of tasks that take
/// no time, in program order. Buffers are known as strategies/check/lives.hpp knows them.
std::vector<MemoryChange> memory_changes(
    const strategies::Program& program, const Timeline& timeline, std::size_t actor,
    strategies::Residence place = strategies::Residence::device);

}  // namespace stratagem::sim

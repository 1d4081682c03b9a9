// The allocations and frees of a device's buffers, in the order of tasks or of time.
#pragma once

#include <optional>
#include <vector>

#include "base/quantity.hpp"
#include "program/program.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// An allocation or a free.
struct MemoryChange {
  Instant when;
  bool begun = false;  ///< by a task that began at this instant
  int task = 0;        ///< round * tasks of a round + place in the sequence
  /// What allocates and what frees one buffer has its number: that in program::Buffers, beside
  /// those of other iterations.
  int buffer = -1;
  program::Category category = program::Category::temporaries;
  Bytes bytes;  ///< below 0: a free
  /// Of a free: when the last collective that reads or writes the buffer has ended.
  Instant ready{0};
};

/// As memory_changes, in the order of tasks; of a task allocations come before frees.
std::vector<MemoryChange> changes_by_task(const program::Program& program, const Timeline& timeline,
                                          std::size_t actor,
                                          program::Residence place = program::Residence::device,
                                          std::optional<int> rounds = {});

/// The indices of these changes in the order of time. At one instant: as in memory_changes.
std::vector<int> order_of_time(const std::vector<MemoryChange>& by_task);

/// The changes in one place (device, host or drives) in the first `rounds` rounds; if they are not
/// named, in the first iteration, or where iterations overlap until as many as can be are under
/// way. A buffer is allocated when a task begins and freed when a task ends. At one instant the
/// order is: frees by tasks that ran until then, then allocations and frees by tasks that take no
/// time, in program order. Expects a program of which nothing is freed that was not allocated
/// (program/buffers.hpp).
std::vector<MemoryChange> memory_changes(const program::Program& program, const Timeline& timeline,
                                         std::size_t actor,
                                         program::Residence place = program::Residence::device,
                                         std::optional<int> rounds = {});

}  // namespace stratagem::sim

// Which buffers a device holds at the end of a period that a timeline leaves out, and at its begin.
#pragma once

#include <optional>
#include <vector>

#include "program/program.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// A buffer that is live after the last task of a period, and the one that was in its place before
/// the first: the same of an earlier micro-batch. Numbers are those of program::Buffers.
struct Renamed {
  int after = 0;
  int before = 0;
};

/// All that are renamed in the order of an actor's launches; others are live before and after. Empty
/// if the buffers before a period are not those after it.
std::optional<std::vector<Renamed>> renamed_buffers(const program::Program& program,
                                                    const Timeline& timeline, std::size_t actor);

/// Do all actors have after each period of the first round what they had before, in the order of
/// their launches and of time?
bool buffers_repeat(const program::Program& program, const Timeline& timeline);

}  // namespace stratagem::sim

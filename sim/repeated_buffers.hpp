// Which buffers a device holds at the end of a period that a timeline leaves out, and at its begin.
#pragma once

#include "program/program.hpp"
#include "sim/timeline.hpp"

namespace stratagem::sim {

/// Do all actors have after each period of the first round what they had before, in the order of
/// their launches and of time? Then notes in the timeline which buffers it renames.
bool buffers_repeat(const program::Program& program, Timeline& timeline);

}  // namespace stratagem::sim

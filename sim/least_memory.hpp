// A lower bound of the memory of devices, known before anything is simulated.
#pragma once

#include <vector>

#include "cost/profile.hpp"
#include "cost/stack.hpp"
#include "program/program.hpp"

namespace stratagem::sim {

/// No device of the program uses less than its residents, context, workspace and communicators (as
/// in DeviceMemory), and what its computations allocate and free: they run one after another in the
/// order of the program, whatever else runs meanwhile. Left out are buffers that other streams
/// allocate or free, and what the allocator holds beyond the live ones. Expects a checked program.
/// Returns the highest bound of the first device of each sequence, so
/// `highest(device_memory(...)).used` is at least that.
Bytes least_memory(const program::Program& program, const cost::Profile& profile,
                   const cost::Stack& stack, const std::vector<int>& groups_beside = {});

}  // namespace stratagem::sim

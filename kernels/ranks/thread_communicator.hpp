// Ranks that are threads of one process and take turns: to check what ranks compute, not how fast.
#pragma once

#include <functional>

#include "kernels/ranks/communicator.hpp"

namespace stratagem::kernels {

/// Runs `rank` on so many ranks, each with the group of all, and returns when all have. One
/// computes at a time, the others wait for their turn, so libraries need not stand several threads.
/// Messages are copied when they are sent. Throws what the first rank to fail threw; the others get
/// a CommunicationError wherever they would wait for it.
void run_ranks(int ranks, const std::function<void(Communicator& world)>& rank);

}  // namespace stratagem::kernels

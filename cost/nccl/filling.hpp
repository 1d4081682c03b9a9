// As many channels of one speed as a server carries.
#pragma once

#include <vector>

#include "cost/nccl/graph.hpp"
#include "cost/nccl/server.hpp"
#include "cost/nccl/terms.hpp"

namespace stratagem::cost::nccl {

/// The most channels that were found before the search had taken its steps, one for each GPU that
/// it places: 256 where all channels are to have one order, else 16,384. That is how long NCCL
/// looks (from memory, and 72 GPUs in one domain tell it), so that what it does not find in time is
/// not found here either. Depth first: each channel first repeats the last one, then tries other
/// orders. On a switch a channel goes from a GPU to its neighbours in number and to no other, plain
/// trees to the next one alone, so that the steps suffice for mixed orders (search.cc of
/// NVIDIA/nccl 2.28, read; 2.12 had no such rule); elsewhere GPUs with the nearest and widest
/// remaining path come first. A channel takes its speed from every link that it crosses.
std::vector<Channel> fill(const Server& server, const Paths& paths, const Terms& terms);

}  // namespace stratagem::cost::nccl

// Finds the channels that NCCL would find on a server, by trying speeds and kinds of paths in its
// order.
#pragma once

#include "cost/nccl/filling.hpp"
#include "cost/nccl/graph.hpp"

namespace stratagem::cost::nccl {

/// The graphs of the algorithms for the GPUs of a communicator on one server.
struct Graphs {
  Graph ring;
  Graph tree;
  Graph nvls;  ///< without channels where the hardware has no reduction in the switch
};

/// The solution with the greatest number of channels times speed, the first of equals, of attempts
/// in this order: from the fastest speed in NCCL's list that one GPU's paths and links allow down
/// to half of the best solution's; within that rings that leave by the adapter they came in by
/// before others; within that nearer adapters before farther ones; within that nearer paths between
/// GPUs before farther ones; within that, on Hopper, balanced trees before plain ones; and within
/// all channels of one order before channels of several. It ends where no more can be had than the
/// links of one GPU carry.
/// Then a solution of fast channels is cut into twice as many of half the speed, trees (which need
/// as many channels as rings) get a faster speed between GPUs where the links allow it, and
/// reductions in the switch a faster one through adapters. Where nothing fits, not even at the
/// slowest speed, there is one channel of 0.1 GB/s in the order of the GPUs. Source: search.cc of
/// NVIDIA/nccl 2.28.9, as docs/internals/network.md tells it; error: none in the counts and speeds
/// of the 34 machines and parts of machines that its own code was run on; the orders of GPUs
/// differ. Left out: NCCL's preference for fewer hops among equal solutions, CollNet, and what it
/// takes off where GPUs talk through an Intel processor.
Graphs find_graphs(const Server& server, const Paths& paths, bool several_nodes);

}  // namespace stratagem::cost::nccl

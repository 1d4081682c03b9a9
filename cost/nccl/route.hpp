// The loads of a collective on every link if NCCL's channels carry it, not a ring in closed form.
#pragma once

#include <vector>

#include "cost/nccl/communicator.hpp"
#include "cost/ring.hpp"
#include "topology/cluster.hpp"

namespace stratagem::cost::nccl {

/// Loads per byte of payload for one algorithm, and the slowest hops of its channels. Each of the c
/// channels carries 1/c of the payload:
///   ring      what a ring's edge carries (cost/ring.hpp) along every edge of each channel; between
///             nodes out of one's adapter into the next one's; PAT counts as a ring
///   tree      the payload up and down every edge of a channel within a node; between nodes half of
///             it up and down each of two binary trees over the nodes, one shifted against the
///             other by a node, so that what is a leaf in one is not in the other
///   NVLS      all-reduce: 1 + 1/k from each of a node's k GPUs to its switches and back;
///             reduce-scatter 1 up and 1/k down, all-gather the reverse
///   NVLSTree  NVLS in every node and the trees of each channel's adapter between nodes
///   direct    as ring_route: shortest paths
/// A path that leads over another GPU loads the links of both its parts.
Carried channel_loads(CollectiveKind kind, Algorithm algorithm, const topology::Cluster& cluster,
                      const std::vector<int>& ranks, const Communicator& communicator);

}  // namespace stratagem::cost::nccl

// As many channels of one speed as a server carries.
#pragma once

#include <vector>

#include "cost/nccl/graph.hpp"
#include "cost/nccl/server.hpp"

namespace stratagem::cost::nccl {

/// What channels may be like in one attempt of the search.
struct Terms {
  Pattern pattern = Pattern::ring;
  BytesPerSecond intra;  ///< speed of a channel between GPUs
  BytesPerSecond inter;  ///< and through adapters
  PathType max_intra = PathType::nvlink;
  PathType max_inter = PathType::pcie_switch;
  bool same_order = true;      ///< all channels visit the GPUs in the order of the first
  bool across_nics = false;    ///< may a ring leave by another adapter than it came in by?
  bool several_nodes = false;  ///< do channels begin and end at adapters?
  int most = 32;               ///< channels
};

/// The most channels that were found before `steps` GPUs had been placed. Depth first: each channel
/// first repeats the last one, then tries other orders, GPUs with the
/// nearest and widest remaining path first. A
/// channel takes its speed from every link that it crosses. The bound on steps is NCCL's own, so
/// that what takes too long to find there is not found here either.
std::vector<Channel> fill(const Server& server, const Paths& paths, const Terms& terms,
                          int steps = 1 << 14);

}  // namespace stratagem::cost::nccl

// What NCCL's search asks of channels, attempt by attempt.
#pragma once

#include "base/quantity.hpp"
#include "cost/nccl/graph.hpp"
#include "cost/nccl/paths.hpp"

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

}  // namespace stratagem::cost::nccl

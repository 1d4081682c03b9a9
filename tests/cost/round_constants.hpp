// Constants of collectives in closed form, round enough to reckon with.
#pragma once

#include "cost/profile.hpp"

namespace stratagem::cost {

/// Everything usable, 10 us base, 1 us a step within a node, 5 us across, with all that links take.
inline CollectiveConstants round_constants() {
  CollectiveConstants c;
  c.nvlink_efficiency.value = c.network_efficiency.value = c.pcie_efficiency.value = 1;
  c.base.value = 10_us;
  c.node_step.value = 1_us;
  c.network_step.value = 5_us;
  c.node_link_latency = c.network_link_latency = Constant<Seconds>{.value = 1_ms};
  return c;
}

}  // namespace stratagem::cost

// DGX-2H: a DGX-2 with GPUs of 450 W.
#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {

/// Wired as the DGX-2. MLPerf's descriptions tell them apart by GPU (450 W, 1.7 GHz) and processor
/// (mlperf07).
Cluster dgx_2h(int nodes) {
  return {dgx_2_design("DGX-2H", "v100-sxm3-450w"), nodes, parts::one_switch("EDR")};
}

}  // namespace stratagem::topology

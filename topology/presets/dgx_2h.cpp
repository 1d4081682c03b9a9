// DGX-2H: a DGX-2 with GPUs of 450 W.
#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {
namespace {

/// Wired as the DGX-2. MLPerf's descriptions tell them apart by GPU (450 W, 1.7 GHz) and processor
/// (mlperf07).
Cluster dgx_2h_cluster(int nodes) {
  return {dgx_2_design("DGX-2H", "v100-sxm3-450w"), nodes, parts::one_switch("EDR")};
}

}  // namespace

Preset dgx_2h() {
  return {"dgx-2h", "16 V100 SXM3 (450 W), 12 NVSwitches, 8 EDR adapters", &dgx_2h_cluster};
}

}  // namespace stratagem::topology

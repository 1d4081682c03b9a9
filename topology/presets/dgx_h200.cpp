// DGX H200: a DGX H100 with GPUs of 141 GB.
#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {
namespace {

/// Wired as the DGX H100: 18 NVLinks of 25 GB/s per GPU (mleng accelerator tables), four NVSwitches
/// and eight ConnectX-7 for computing (datasheet, from memory). NVIDIA sells both boards as HGX.
Cluster dgx_h200_cluster(int nodes) {
  return {dgx_h100_design("DGX H200", "h200-sxm5"), nodes, parts::one_switch("NDR")};
}

}  // namespace

Preset dgx_h200() {
  return {"dgx-h200", "8 H200 SXM5, 4 NVSwitches, 8 NDR adapters", &dgx_h200_cluster};
}

}  // namespace stratagem::topology

// DGX H200: a DGX H100 with GPUs of 141 GB.
#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {

/// Wired as the DGX H100: 18 NVLinks of 25 GB/s per GPU (mleng accelerator tables), four NVSwitches
/// and eight ConnectX-7 for computing (datasheet, from memory). NVIDIA sells both boards as HGX.
Cluster dgx_h200(int nodes) {
  return {dgx_h100_design("DGX H200", "h200-sxm5"), nodes, parts::one_switch("NDR")};
}

}  // namespace stratagem::topology

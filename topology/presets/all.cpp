// The table of presets, in the order in which --help lists them.
#include "topology/presets.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table{
      {"dgx-1v", "8 V100 SXM2, hybrid cube mesh, 4 EDR adapters", &dgx_1v},
      {"dgx-2", "16 V100 SXM3 (350 W), 12 NVSwitches, 8 EDR adapters", &dgx_2},
      {"dgx-2h", "16 V100 SXM3 (450 W), 12 NVSwitches, 8 EDR adapters", &dgx_2h},
      {"dgx-a100", "8 A100 SXM4 80 GB, 6 NVSwitches, 8 HDR adapters", &dgx_a100},
      {"dgx-h100", "8 H100 SXM5, 4 NVSwitches, 8 NDR adapters", &dgx_h100},
  };
  return table;
}

}  // namespace stratagem::topology

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
      {"dgx-h200", "8 H200 SXM5, 4 NVSwitches, 8 NDR adapters", &dgx_h200},
      {"hgx-b200", "8 B200, 2 NVSwitches, 8 NDR adapters", &hgx_b200},
      {"gb200-nvl72", "72 GPUs of GB200, 18 NVSwitches, 72 NDR adapters", &gb200_nvl72},
      {"pcie-v100", "8 V100 PCIe on two PCIe switches, 2 EDR adapters", &pcie_v100},
      {"pcie-a100", "8 A100 PCIe on two PCIe switches, 2 HDR adapters", &pcie_a100},
      {"p3.16xlarge", "AWS: 8 V100 SXM2, hybrid cube mesh, 25 Gb/s Ethernet", &p3_16xlarge},
      {"p3dn.24xlarge", "AWS: 8 V100 SXM2 32 GB, hybrid cube mesh, 100 Gb/s Ethernet",
       &p3dn_24xlarge},
      {"cpu-host", "no GPUs: 2 Xeon Platinum (Skylake) with a rank each, 2 EDR adapters",
       &cpu_host},
  };
  return table;
}

}  // namespace stratagem::topology

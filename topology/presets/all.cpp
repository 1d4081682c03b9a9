// The table of presets, in the order of --help.
#include "base/table.hpp"
#include "topology/presets.hpp"

namespace stratagem::topology {

// clang-format off
STRATAGEM_TABLE(presets, Preset,
    dgx_1v,
    dgx_2,
    dgx_2h,
    dgx_a100,
    dgx_h100,
    dgx_h200,
    hgx_b200,
    hgx_b300,
    gb200_nvl72,
    gb200_nvl64,
    gb300_nvl72,
    gb300_nvl64,
    pcie_v100,
    pcie_a100,
    p3_16xlarge,
    p3dn_24xlarge,
    cpu_host)
// clang-format on

}  // namespace stratagem::topology

// The table of GPU generations.
#include "topology/importers/gpu_generation.hpp"

#include <algorithm>

#include "topology/presets/parts.hpp"

namespace stratagem::topology::importers {

/// NVLinks and PCIe: accelerator tables of stas00/ml-engineering 744d01e; P100 and the fewer links
/// of A800, H800 (8 each: NV8 in nccl#933) from memory, and that H20 has all 18. Sockets: those of
/// the presets DGX-1V, DGX A100, DGX H100 and HGX B200 and B300, so assumed for other servers.
const std::vector<GpuGeneration>& gpu_generations() {
  using namespace parts;
  static const std::vector<GpuGeneration> table{
      {"p100", 60, 4, 20_GBps, pcie_3_x16, 38.4_GBps},
      {"v100", 70, 6, nvlink, pcie_3_x16, 38.4_GBps},
      {"a100", 80, 12, nvlink, pcie_4_x16, 128_GBps},
      {"a800", 80, 8, nvlink, pcie_4_x16, 128_GBps},
      {"h100", 90, 18, nvlink, pcie_5_x16, 192_GBps},
      {"h800", 90, 8, nvlink, pcie_5_x16, 192_GBps},
      {"h200", 90, 18, nvlink, pcie_5_x16, 192_GBps},
      {"h20", 90, 18, nvlink, pcie_5_x16, 192_GBps},
      {"b200", 100, 18, nvlink_5, pcie_5_x16, 240_GBps},
      {"b300", 103, 18, nvlink_5, pcie_6_x16, 288_GBps},
  };
  return table;
}

const GpuGeneration* generation_of(const std::string& gpu) {
  const auto found = std::ranges::find_if(gpu_generations(), [&](const GpuGeneration& one) {
    return gpu == one.name || gpu.starts_with(one.name + "-");
  });
  return found == gpu_generations().end() ? nullptr : &*found;
}

BytesPerSecond nvlink_of(int compute_capability) {
  const auto found =
      std::ranges::find(gpu_generations(), compute_capability, &GpuGeneration::compute_capability);
  return found == gpu_generations().end() ? BytesPerSecond{} : found->nvlink;
}

}  // namespace stratagem::topology::importers

// GB200 NVL72: a rack of 72 GPUs, all of which are in use, or 64.
#include <cstddef>
#include <utility>

#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {
namespace {

/// Adapters: four ConnectX-7 per tray (mleng), 400 Gb/s each; that two hang on each Grace at PCIe
/// 5.0 x16 is assumed. Adapters count tray by tray, so four rails are those of the trays. The rest:
/// grace_rack.cpp.
Cluster gb200_rack(int trays, int nodes) {
  GraceRack rack = grace_rack("GB200", "gb200", 100, trays);
  const auto nics = parts::add_row(rack.design, VertexKind::nic, "nic", 4 * trays);
  const auto pcie = parts::pcie_of(rack.design, parts::pcie_5_x16);
  for (std::size_t i = 0; i < nics.size(); ++i) pcie(nics[i], rack.cpus[i / 2]);
  return {std::move(rack.design), nodes, parts::one_switch("NDR")};
}

}  // namespace

Preset gb200_nvl72() {
  return {"gb200-nvl72", "72 GPUs of GB200, 18 NVSwitches, 72 NDR adapters",
          [](int nodes) { return gb200_rack(18, nodes); }};
}

Preset gb200_nvl64() {
  return {"gb200-nvl64", "a GB200 NVL72 with 64 of its 72 GPUs in use",
          [](int nodes) { return gb200_rack(16, nodes); }};
}

}  // namespace stratagem::topology

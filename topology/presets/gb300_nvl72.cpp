// GB300 NVL72: a rack of 72 GPUs, all of which are in use, or 64.
#include <cstddef>
#include <utility>

#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {
namespace {

/// NVLinks and processors as in a GB200 NVL72 (mleng: the same but for fp4 and memory). Adapters:
/// one ConnectX-8 a GPU, 800 Gb/s each, with a PCIe switch that joins it to its GPU by 16 lanes of
/// PCIe 6.0 and to its Grace by 16 of 5.0: from memory.
Cluster gb300_rack(int trays, int nodes) {
  GraceRack rack = grace_rack("GB300", "gb300", 103, trays, 4 * trays);
  parts::add_connectx_8(rack.design, rack.gpus, rack.switches);
  const auto pcie = parts::pcie_of(rack.design, parts::pcie_5_x16);
  for (std::size_t i = 0; i < rack.switches.size(); ++i) pcie(rack.switches[i], rack.cpus[i / 2]);
  return {std::move(rack.design), nodes, parts::one_switch("XDR")};
}

}  // namespace

Preset gb300_nvl72() {
  return {"gb300-nvl72", "72 GPUs of GB300, 18 NVSwitches, 72 XDR adapters",
          [](int nodes) { return gb300_rack(18, nodes); }};
}

Preset gb300_nvl64() {
  return {"gb300-nvl64", "a GB300 NVL72 with 64 of its 72 GPUs in use",
          [](int nodes) { return gb300_rack(16, nodes); }};
}

}  // namespace stratagem::topology

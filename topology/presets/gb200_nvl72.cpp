// GB200 NVL72: a rack of 72 GPUs in one NVLink domain, which is one node here; all of them are in
// use, or 64.
#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {
namespace {

/// - NVLinks: 18 of 50 GB/s per GPU (mleng accelerator tables), one to each of the 18 chips of nine
///   switch trays: the trays read (NVIDIA's Mission Control documentation, hardware.json), chips
///   per tray and links per chip from memory. 72 x 18 x 50 GB/s are the 130 TB/s of the datasheet,
///   which counts both directions.
/// - Trays: 18 of four GPUs and two Grace, from memory; a Grace with two GPUs, 450 GB/s of
///   NVLink-C2C to each (mleng). Its latency is assumed to be that of an NVLink.
/// - Adapters: four ConnectX-7 per tray (mleng), 400 Gb/s each; that two hang on each Grace at PCIe
///   5.0 x16 is assumed. Adapters count tray by tray, so four rails are those of the trays.
/// - The link between the two Grace of a tray is left out: neither GPUs nor copies to the nearest
///   processor use it. So a GPU reaches the adapters of its own Grace only.
/// A rack of which so many compute trays, of four GPUs each, are in use.
Cluster rack_of(int trays, int nodes) {
  constexpr BytesPerSecond c2c = 450_GBps;

  NodeDesign design{.name = fmt::format("GB200 NVL{}", 4 * trays),
                    .gpu = "gb200",
                    .vertices = {},
                    .links = {},
                    .compute_capability = 100,
                    .processor = Processor::unknown};
  const auto gpus = parts::add_row(design, VertexKind::gpu, "gpu", 4 * trays);
  const auto nv_switches = parts::add_row(design, VertexKind::nv_switch, "nvswitch", 18);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "grace", 2 * trays);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 4 * trays);

  parts::join_to_switches(design, gpus, nv_switches, 1, parts::nvlink_5);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    design.join(gpus[i], cpus[i / 2], LinkKind::c2c, 1, c2c, parts::nvlink_latency);
    design.join(nics[i], cpus[i / 2], LinkKind::pcie, 1, parts::pcie_5_x16, parts::pcie_latency);
  }
  return {std::move(design), nodes, parts::one_switch("NDR")};
}

}  // namespace

Preset gb200_nvl72() {
  return {"gb200-nvl72", "72 GPUs of GB200, 18 NVSwitches, 72 NDR adapters",
          [](int nodes) { return rack_of(18, nodes); }};
}

Preset gb200_nvl64() {
  return {"gb200-nvl64", "a GB200 NVL72 with 64 of its 72 GPUs in use",
          [](int nodes) { return rack_of(16, nodes); }};
}

}  // namespace stratagem::topology

// Racks of 72 Blackwell GPUs in one NVLink domain, which is one node here.
#include <fmt/format.h>

#include <cstddef>

#include "topology/presets/parts.hpp"
#include "topology/presets/servers.hpp"

namespace stratagem::topology {

/// - NVLinks: 18 of 50 GB/s per GPU (mleng accelerator tables), one to each of the 18 chips of nine
///   switch trays: the trays read (NVIDIA's Mission Control documentation, hardware.json), chips
///   per tray and links per chip from memory. 72 x 18 x 50 GB/s are the 130 TB/s of the datasheet,
///   which counts both directions.
/// - Trays: 18 of four GPUs and two Grace, from memory; a Grace with two GPUs, 450 GB/s of
///   NVLink-C2C to each (mleng). Its latency is assumed to be that of an NVLink.
/// - The link between the two Grace of a tray is left out: neither GPUs nor copies to the nearest
///   processor use it. So a GPU reaches the adapters of its own Grace only.
GraceRack grace_rack(const std::string& name, const std::string& gpu, int compute_capability,
                     int trays, int switches) {
  constexpr BytesPerSecond c2c = 450_GBps;

  GraceRack rack{.design = {.name = fmt::format("{} NVL{}", name, 4 * trays),
                            .gpu = gpu,
                            .vertices = {},
                            .links = {},
                            .compute_capability = compute_capability,
                            .processor = Processor::unknown},
                 .gpus = {},
                 .switches = {},
                 .cpus = {}};
  NodeDesign& design = rack.design;
  rack.gpus = parts::add_row(design, VertexKind::gpu, "gpu", 4 * trays);
  const auto nv_switches = parts::add_row(design, VertexKind::nv_switch, "nvswitch", 18);
  rack.switches = parts::add_row(design, VertexKind::pcie_switch, "pcie", switches);
  rack.cpus = parts::add_row(design, VertexKind::cpu, "grace", 2 * trays);

  parts::join_to_switches(design, rack.gpus, nv_switches, 1, parts::nvlink_5);
  for (std::size_t i = 0; i < rack.gpus.size(); ++i)
    design.join(rack.gpus[i], rack.cpus[i / 2], LinkKind::c2c, 1, c2c, parts::nvlink_latency);
  return rack;
}

}  // namespace stratagem::topology

// A server without GPUs: ranks are its processors.
#include <cstddef>
#include <utility>

#include "topology/presets.hpp"
#include "topology/presets/parts.hpp"

namespace stratagem::topology {
namespace {

/// The host of a DGX-2 without its GPUs: two Xeon Platinum of the Skylake kind, one rank on each
/// (`divided` makes more of them).
/// - Memory: six channels of DDR4-2666 per processor, 8 bytes at 2.667 GT/s, 21.33 GB/s each
///   (JEDEC's rate; six channels: datasheet from memory). Channels read or write, not both at once;
///   what ranks get of them when one writes what another reads says the profile's
///   memory_efficiency. Latency assumed.
/// - Sockets: three UPI links of 20.8 GB/s, as in the DGX-2.
/// - Adapters: one EDR per processor, PCIe 3.0 x16, assumed.
Cluster cpu_host_cluster(int nodes) {
  constexpr BytesPerSecond ddr4_2666 = 21.33_GBps;
  constexpr BytesPerSecond upi = 20.8_GBps;
  constexpr Seconds memory_latency = 100_ns;

  NodeDesign design{.name = "CPU host",
                    .gpu = "xeon-platinum-skylake",
                    .vertices = {},
                    .links = {},
                    .processor = Processor::intel_skylake};
  const auto ranks = parts::add_row(design, VertexKind::cpu_rank, "rank", 2);
  const auto cpus = parts::add_row(design, VertexKind::cpu, "cpu", 2);
  const auto nics = parts::add_row(design, VertexKind::nic, "nic", 2);
  for (std::size_t i = 0; i < 2; ++i) {
    design.join(ranks[i], cpus[i], LinkKind::memory, 6, ddr4_2666, memory_latency);
    design.join(nics[i], cpus[i], LinkKind::pcie, 1, parts::pcie_3_x16, parts::pcie_latency);
  }
  design.join(cpus[0], cpus[1], LinkKind::inter_socket, 3, upi, parts::socket_latency);
  return {std::move(design), nodes, parts::one_switch("EDR")};
}

}  // namespace

Preset cpu_host() {
  return {"cpu-host", "no GPUs: 2 Xeon Platinum (Skylake) with a rank each, 2 EDR adapters",
          &cpu_host_cluster};
}

}  // namespace stratagem::topology

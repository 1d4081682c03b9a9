// The table of network speeds, with where each figure is from.
#include "topology/network_speed.hpp"

#include <algorithm>

#include "base/input_error.hpp"

namespace stratagem::topology {

/// - InfiniBand's rates: stas00/ml-engineering 744d01e. Port latencies: the same for EDR and HDR
///   (there those of an adapter), SimAI's default for NDR (aliyun/SimAI cef83f9). Switches: 36
///   ports and 90 ns (EDR), 40 and 130 ns (HDR), 144 ports (XDR) from memory; 64 ports (NDR) read
///   in ml-engineering; HDR's 130 ns stand in for NDR's and XDR's.
/// - Ethernet's rates are in the names. 64 ports of 800 Gb/s read (SN5600, ml-engineering); other
///   radixes assumed. 1 us to a switch and 600 ns between switches are assumed for RDMA (RoCE,
///   EFA); a TCP stack costs more, which is a matter of the profile's network_step.
const std::vector<NetworkSpeed>& network_speeds() {
  static const std::vector<NetworkSpeed> table{
      {"EDR", 12.5_GBps, 0.5_us, 90_ns, 36, "rate, port latency read; radix, switch assumed"},
      {"HDR", 25_GBps, 0.6_us, 130_ns, 40, "rate, port latency read; radix, switch assumed"},
      {"NDR", 50_GBps, 0.5_us, 130_ns, 64, "rate, port latency, radix read; switch assumed"},
      {"XDR", 100_GBps, 0.5_us, 130_ns, 144, "rate read; latencies, radix assumed"},
      {"10GbE", 1.25_GBps, 1_us, 600_ns, 32, "rate by name; latencies, radix assumed"},
      {"25GbE", 3.125_GBps, 1_us, 600_ns, 32, "rate by name; latencies, radix assumed"},
      {"100GbE", 12.5_GBps, 1_us, 600_ns, 32, "rate by name; latencies, radix assumed"},
      {"200GbE", 25_GBps, 1_us, 600_ns, 64, "rate by name; latencies, radix assumed"},
      {"400GbE", 50_GBps, 1_us, 600_ns, 64, "rate by name; latencies, radix assumed"},
      {"800GbE", 100_GBps, 1_us, 600_ns, 64, "rate by name; radix read; latencies assumed"},
  };
  return table;
}

const NetworkSpeed& network_speed(const std::string& name) {
  const auto found = std::ranges::find(network_speeds(), name, &NetworkSpeed::name);
  expects(found != network_speeds().end(), "a network speed of the table");
  return *found;
}

}  // namespace stratagem::topology

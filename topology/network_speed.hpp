// The speeds that networks come in: InfiniBand by generation, Ethernet by rate.
#pragma once

#include <string>
#include <vector>

#include "base/quantity.hpp"

namespace stratagem::topology {

/// One generation of network. `port` is the signalling rate of one port in one direction, as the
/// datasheets have it; the usable share is the profile's matter.
struct NetworkSpeed {
  std::string name;        ///< "NDR", "100GbE"; "" where a user gives the figures
  BytesPerSecond port;     ///< of an adapter and of every cable between switches
  Seconds port_latency;    ///< of the way between an adapter and its switch
  Seconds switch_latency;  ///< of a cable between two switches, with the switch that it leads to
  int radix = 64;          ///< ports of one switch
  std::string provenance;  ///< read, datasheet or assumed, figure by figure
  friend bool operator==(const NetworkSpeed&, const NetworkSpeed&) = default;
};

/// All that we know by name, InfiniBand first, slower ones first.
const std::vector<NetworkSpeed>& network_speeds();

/// The speed of that name, which must be known.
const NetworkSpeed& network_speed(const std::string& name);

}  // namespace stratagem::topology
